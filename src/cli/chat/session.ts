/**
 * A conversation at a terminal. Lines go to the agent, its events come back, and questions are answered here. Events are
 * processed in order: later events wait while a question is on the screen, except the event that another approver
 * answered it.
 */
import type { NeoClient, NeoEvent } from '../../agents/neo/client.ts';
import { wait } from '../../kit/clock/clock.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { TurnEventData } from '../../wire/turn.ts';
import type { CliContext } from '../context.ts';
import { wrap } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import { arrivalLine, Screen } from './conversation.ts';
import { answerInline, decidedWords } from './gates.ts';
import { LineEditor } from './line-editor.ts';
import { answerQuestionInline } from './questions.ts';

const PROMPT = '> ';
/** Events that wait behind a question; further ones stay in the stream. */
const MOST_HELD = 1000;
/** After a rejection that only an operator can resolve. */
const AGAIN_MS = 3000;
const LEAVES = 'Ctrl-C again leaves; the agent continues';

export type SessionOptions = {
  client: NeoClient;
  /** The conversation to continue; otherwise the first line starts a new one. */
  conversationId: string | undefined;
  /** Whether the agent was reached; the reason was already shown if not. */
  isThere: boolean;
  /** A remark to show before the first question when the agent is reached later. */
  toKnow: () => Promise<string | undefined>;
};

/** Chats until the user leaves. @returns the conversation, when there was one */
export async function talk(
  context: CliContext,
  { client, conversationId: given, isThere, toKnow }: SessionOptions,
): Promise<string | undefined> {
  const { process } = context;
  const ended = new AbortController();
  const look = () => readerOf(context);
  const screen = new Screen((text) => void process.stdout.write(text), look);
  const running = new Set<string>();
  const own = new Set<string>();
  const answered = new Set<string>();
  /** Steps whose question was answered at this terminal. */
  const answeredHere = new Set<string>();
  /** Events that wait to be processed, and the question on the screen. */
  const held: Held[] = [];
  let open: { step: string; withdrawn: AbortController } | undefined;
  let conversationId = given;
  let sending = 0;
  let mayLeave = false;

  const editor = new LineEditor({
    process,
    prompt: PROMPT,
    historyFile: context.home.chatHistoryFile,
    onLine: (line) => void send(line),
    onInterrupt: (isEmpty) => void interrupt(isEmpty),
    onEnd: () => ended.abort(),
  });

  const isBusy = () => running.size > 0 || sending > 0;
  /** Writes above the input line. */
  function say(text: string): void {
    editor.hide();
    screen.line(text);
  }
  /** Writes a sentence, wrapped at blanks. */
  function complain(color: 'yellow' | 'red', text: string): void {
    for (const line of wrap(oneLine(text), look().width - 1)) say(look().paint(color, line));
  }
  function settle(): void {
    if (ended.signal.aborted || isBusy()) return;
    mayLeave = false;
    screen.freshLine();
    editor.show();
  }

  async function send(line: string): Promise<void> {
    const message = line.trim();
    if (message === '') return settle();
    if (isBusy()) say(look().paint('dim', `${PROMPT}${message}`));
    sending++;
    editor.hide();
    try {
      const chat = { message: line, ...(conversationId === undefined ? {} : { conversation_id: conversationId }) };
      const accepted = await client.chat(chat, ended.signal);
      conversationId = accepted.conversation_id;
      own.add(accepted.turn_id);
      // Its end may have been shown already.
      if (!answered.has(accepted.turn_id)) running.add(accepted.turn_id);
      sending--;
      settle();
    } catch (error) {
      sending--;
      if (ended.signal.aborted) return;
      complain('red', `not sent: ${wordsOf(error)}`);
      if (!isBusy()) editor.show(line);
    }
  }

  async function interrupt(isEmpty: boolean): Promise<void> {
    if (mayLeave || (sending > 0 && running.size === 0)) return leave();
    if (running.size > 0) {
      mayLeave = true;
      say(look().paint('yellow', `stopping the turn; ${LEAVES}`));
      for (const id of [...running]) {
        await client
          .cancelTurn(id)
          .catch((error: unknown) => say(look().paint('red', `not stopped: ${wordsOf(error)}`)));
      }
      return;
    }
    if (!isEmpty) return editor.clear();
    mayLeave = true;
    say(look().paint('dim', LEAVES));
    editor.show();
  }

  function leave(): void {
    ended.abort();
    editor.end();
  }

  async function follow(event: NeoEvent): Promise<void> {
    if (event.type === 'gate') return await onGate(event.data);
    if (event.type === 'question') return await onQuestion(event.data);
    const { data } = event;
    // Text of other conversations is for their clients.
    if (data.conversation_id !== undefined && data.conversation_id !== conversationId) {
      if (event.type === 'turn' && data.conversation_id !== undefined) noteEnd(event.data);
      return;
    }
    editor.hide();
    if (event.type === 'turn') return await onTurn(event.data);
    screen.show(event);
    if (!isBusy()) settle();
  }

  /** A turn of this terminal can end before the response with its id arrives. */
  function noteEnd({ turn_id, status }: TurnEventData<'turn'>): void {
    if (status !== 'queued' && status !== 'running') answered.add(turn_id);
  }

  async function onTurn(turn: TurnEventData<'turn'>): Promise<void> {
    const { turn_id, status, retry_at, conversation_id } = turn;
    noteEnd(turn);
    const goesOn = (status === 'queued' && retry_at === undefined) || status === 'running';
    if (goesOn && !running.has(turn_id)) {
      running.add(turn_id);
      if (!own.has(turn_id) && sending === 0)
        screen.line(arrivalLine(await client.turn(conversation_id, turn_id), look()));
    }
    if (!goesOn) {
      running.delete(turn_id);
      if (status === 'done' && !screen.hasSaid(turn_id)) {
        const { reply } = await client.turn(conversation_id, turn_id);
        if (reply) screen.reply(turn_id, reply);
      }
    }
    screen.show({ type: 'turn', data: turn });
    settle();
  }

  async function onGate(gate: TurnEventData<'gate'>): Promise<void> {
    const step = stepOf(gate);
    if (gate.state !== 'asked') {
      if (answeredHere.delete(step)) return;
      say(look().paint('dim', decidedWords(gate)));
      return settle();
    }
    const key = `${step} ${gate.displayed_sha256}`;
    if (answered.has(key)) return;
    answered.add(key);
    editor.hide();
    screen.freshLine();
    const withdrawn = new AbortController();
    open = { step, withdrawn };
    const isDecided = held.some((one) => decides(one, step));
    const { words, isTaken } = isDecided
      ? { words: '', isTaken: false }
      : await editor.lend(() => answerInline(context, client, gate, withdrawn.signal));
    open = undefined;
    if (isTaken) answeredHere.add(step);
    // The event with the approver follows.
    if (words === '') return screen.freshLine();
    say(words);
    settle();
  }

  async function onQuestion(question: TurnEventData<'question'>): Promise<void> {
    const { question_id: step, state } = question;
    if (state !== 'asked') {
      if (!answeredHere.delete(step) && answered.has(step))
        say(look().paint('dim', `the question of "${question.server}" no longer waits: ${state}`));
      return settle();
    }
    if (answered.has(step)) return;
    answered.add(step);
    editor.hide();
    screen.freshLine();
    const withdrawn = new AbortController();
    open = { step, withdrawn };
    const isDecided = held.some((one) => decides(one, step));
    const words = isDecided
      ? ''
      : await editor.lend(() => answerQuestionInline(context, client, question, withdrawn.signal));
    open = undefined;
    if (words === 'Answered' || words === 'Declined') answeredHere.add(step);
    if (words === '') return screen.freshLine();
    say(words);
    settle();
  }

  let isFollowing = false;
  let following = Promise.resolve();
  const failed = Promise.withResolvers<never>();
  async function followHeld(): Promise<void> {
    isFollowing = true;
    for (let next = held.shift(); next !== undefined; next = ended.signal.aborted ? undefined : held.shift()) {
      if (typeof next === 'function') await next();
      else await follow(next).catch((error: unknown) => say(look().paint('red', wordsOf(error))));
    }
    isFollowing = false;
  }
  function take(next: Held): void {
    held.push(next);
    if (open && decides(next, open.step)) open.withdrawn.abort();
    if (!isFollowing) following = followHeld().catch(failed.reject);
  }

  let reached = isThere;
  let last: string | undefined;
  const lost = (why: Error) => {
    if (reached) complain('yellow', `${why.message}; trying again`);
    reached = false;
    settle();
  };
  let isKnown = isThere;
  const there = async () => {
    if (!isKnown) {
      isKnown = true;
      const words = await toKnow().catch(() => undefined);
      if (words !== undefined) complain('yellow', words);
    }
    if (!reached) say(look().paint('dim', 'your agent is reachable again'));
    reached = true;
    settle();
  };
  const events = () =>
    client.events({
      signal: ended.signal,
      after: last,
      onConnection: (connection) => take(connection.state === 'open' ? there : () => lost(connection.error)),
    });
  async function listen(): Promise<void> {
    while (!ended.signal.aborted) {
      try {
        for await (const event of events()) {
          last = event.id ?? last;
          take(event);
          if (held.length > MOST_HELD) await following;
        }
      } catch (error) {
        if (!(error instanceof ReveilleError) || error.code === 'unauthorized') throw error;
        // A suspended machine can be restored: the chat stays open and keeps the typed text.
        take(() => {
          running.clear();
          lost(error);
        });
        await wait(context.clock, AGAIN_MS, ended.signal);
      }
    }
  }
  try {
    await Promise.race([listen(), failed.promise]);
  } finally {
    ended.abort();
    open?.withdrawn.abort();
    await following;
    editor.end();
    screen.freshLine();
  }
  return conversationId;
}

type Held = NeoEvent | (() => void | Promise<void>);
const stepOf = ({ intent_id, node_id }: TurnEventData<'gate'>) => `${intent_id} ${node_id}`;

/** Whether the event means that the question of a step no longer waits. */
const decides = (next: Held, step: string): boolean =>
  typeof next !== 'function' &&
  ((next.type === 'gate' && next.data.state !== 'asked' && stepOf(next.data) === step) ||
    (next.type === 'question' && next.data.state !== 'asked' && next.data.question_id === step));

function wordsOf(error: unknown): string {
  if (error instanceof ReveilleError) return error.message;
  throw error;
}
