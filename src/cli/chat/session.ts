/**
 * A conversation at a terminal. Lines go to the agent, its events come back, questions are answered where they come up.
 * Events are taken one by one: while a question is on the screen, what follows waits in the stream.
 */
import { wait } from '../../kit/clock/clock.ts';
import type { NeoClient, NeoEvent } from '../../neo/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { TurnEventData } from '../../wire/turn.ts';
import type { CliContext } from '../context.ts';
import { lookOf } from '../screens/look.ts';
import { arrivalLine, Screen } from './conversation.ts';
import { answerInline } from './gates.ts';
import { LineEditor } from './line-editor.ts';

const PROMPT = '> ';
/** After a refusal that only somebody else can mend. */
const AGAIN_MS = 3000;
const LEAVES = 'Ctrl-C again leaves; the agent goes on with what it has';

export type SessionOptions = {
  client: NeoClient;
  /** The conversation to go on with; a new one begins with the first line otherwise. */
  conversationId: string | undefined;
};

/** Talks until the person leaves. @returns the conversation, when there was one */
export async function talk(
  context: CliContext,
  { client, conversationId: given }: SessionOptions,
): Promise<string | undefined> {
  const { process } = context;
  const ended = new AbortController();
  const look = () => lookOf(context);
  const screen = new Screen((text) => void process.stdout.write(text), look);
  const running = new Set<string>();
  const own = new Set<string>();
  const answered = new Set<string>();
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
  /** Something is written above the line that is typed. */
  function say(text: string): void {
    editor.hide();
    screen.line(text);
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
      // Its end may have been told already.
      if (!answered.has(accepted.turn_id)) running.add(accepted.turn_id);
      sending--;
      settle();
    } catch (error) {
      sending--;
      if (ended.signal.aborted) return;
      say(look().paint('red', `not sent: ${wordsOf(error)}`));
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
    const { data } = event;
    // What is said elsewhere is for those who listen there.
    if (data.conversation_id !== undefined && data.conversation_id !== conversationId) {
      if (event.type === 'turn' && data.conversation_id !== undefined) noteEnd(event.data);
      return;
    }
    editor.hide();
    if (event.type === 'turn') return await onTurn(event.data);
    screen.show(event);
    if (!isBusy()) settle();
  }

  /** A turn of ours can end before the answer that names it is there. */
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
    const key = `${gate.intent_id} ${gate.node_id} ${gate.displayed_sha256}`;
    if (gate.state !== 'asked') {
      if (answered.delete(key)) return;
      say(look().paint('dim', `the question about ${gate.node_id} was ${gate.state} elsewhere`));
      return settle();
    }
    if (answered.has(key)) return;
    answered.add(key);
    editor.hide();
    screen.freshLine();
    const words = await editor.lend(() => answerInline(context, client, gate));
    say(words);
    settle();
  }

  let reached = true;
  let last: string | undefined;
  const events = () =>
    client.events({
      signal: ended.signal,
      after: last,
      onConnection(connection) {
        if (connection.state === 'open') {
          if (!reached) say(look().paint('dim', 'your agent is there again'));
          reached = true;
          settle();
        } else {
          if (reached) say(look().paint('yellow', `${connection.error.message}; trying again`));
          reached = false;
        }
      },
    });
  try {
    while (!ended.signal.aborted) {
      try {
        for await (const event of events()) {
          last = event.id ?? last;
          await follow(event).catch((error: unknown) => say(look().paint('red', wordsOf(error))));
        }
      } catch (error) {
        if (!(error instanceof ReveilleError) || error.code === 'unauthorized') throw error;
        // A machine that was suspended can be restored: the person stays, and so does what they typed.
        if (reached) say(look().paint('yellow', `${error.message}; trying again`));
        reached = false;
        running.clear();
        settle();
        await wait(context.clock, AGAIN_MS, ended.signal);
      }
    }
  } finally {
    editor.end();
    screen.freshLine();
  }
  return conversationId;
}

function wordsOf(error: unknown): string {
  if (error instanceof ReveilleError) return error.message;
  throw error;
}
