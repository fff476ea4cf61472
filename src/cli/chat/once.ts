/** One question and its answer: for scripts and pipes. */
import type { NeoClient, NeoEvent } from '../../neo/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { TurnView } from '../../wire/turn.ts';
import type { CliContext } from '../context.ts';
import { readerOf } from '../screens/reader.ts';
import { Screen } from './conversation.ts';
import { answerInline, gateRemark } from './gates.ts';

type Asked = { client: NeoClient; message: string; conversationId: string | undefined };

/**
 * Asks and waits for the end of the turn. On a terminal the answer is streamed, with the running tools. Otherwise the
 * whole answer is written at the end.
 *
 * @throws ReveilleError `unavailable` when the turn ended without an answer
 */
export async function askOnce(context: CliContext, { client, message, conversationId }: Asked): Promise<TurnView> {
  const { out, process } = context;
  const ended = new AbortController();
  const look = () => readerOf(context);
  const screen = new Screen((text) => void process.stdout.write(text), look);
  const opened = Promise.withResolvers<void>();
  const early: NeoEvent[] = [];
  let turn: { conversation_id: string; turn_id: string } | undefined;
  let isStopping = false;

  const onInterrupt = () => {
    if (isStopping || turn === undefined) return ended.abort();
    isStopping = true;
    out.remark('stopping the turn; Ctrl-C again leaves, and the agent continues');
    client.cancelTurn(turn.turn_id).catch((error: Error) => out.remark(`not stopped: ${error.message}`));
  };

  async function isOver(event: NeoEvent): Promise<boolean> {
    const { data } = event;
    if (data.conversation_id !== turn!.conversation_id) return false;
    if (event.type === 'gate' && event.data.state === 'asked') {
      if (out.live && process.stdin.isTTY === true)
        screen.line((await answerInline(context, client, event.data)).words);
      else out.remark(gateRemark(event.data));
      return false;
    }
    if (!('turn_id' in data) || data.turn_id !== turn!.turn_id) return false;
    if (out.live) screen.show(event);
    return event.type === 'turn' && event.data.status !== 'queued' && event.data.status !== 'running';
  }

  const events = client.events({
    signal: ended.signal,
    onConnection(connection) {
      if (connection.state === 'lost') out.remark(`${connection.error.message}; trying again`);
      opened.resolve();
    },
  });
  const follow = async () => {
    for await (const event of events) {
      if (turn === undefined) early.push(event);
      else if (await isOver(event)) return;
    }
  };
  globalThis.process.on('SIGINT', onInterrupt);
  try {
    // Subscribed before the question is sent, so that no event of its answer is missed.
    const followed = follow().finally(() => opened.resolve());
    followed.catch(() => {});
    await opened.promise;
    turn = await client.chat(
      { message, ...(conversationId === undefined ? {} : { conversation_id: conversationId }) },
      ended.signal,
    );
    let isDone = false;
    for (const event of early) isDone ||= await isOver(event);
    if (!isDone) await followed;
    screen.freshLine();
    const { conversation_id, turn_id } = turn;
    const view = await client.turn(conversation_id, turn_id);
    if (out.live && view.reply && !screen.hasSaid(turn_id)) screen.reply(turn_id, view.reply);
    return view;
  } finally {
    globalThis.process.off('SIGINT', onInterrupt);
    ended.abort();
  }
}

/** @throws ReveilleError `unavailable` for a turn without an answer */
export function assertAnswered({ status, error }: TurnView): void {
  if (status === 'done') return;
  throw new ReveilleError('unavailable', `the turn is ${status}${error === undefined ? '' : `: ${error}`}`);
}
