/**
 * Stand-in for an agent with conversations: it accepts turns like Neo, once per fire id, and a test decides how each
 * goes on.
 */
import type { ServerResponse } from 'node:http';
import { answer, type HttpAgent, startHttpAgent } from './http-agent.ts';

export type StandInTurn = {
  readonly id: string;
  readonly conversation_id: string;
  readonly body: Record<string, unknown> & { message: string; sent_by?: { name: string } };
  readonly userId: string;
  status: 'queued' | 'running' | 'done' | 'failed' | 'interrupted';
  reply?: string;
};

export type ConversingAgent = HttpAgent & {
  readonly turns: StandInTurn[];
  /** The reply to each new turn; without one the turn runs until the test ends it. */
  replyTo: (turn: StandInTurn) => string | undefined;
  /** Whether it refuses messages of other agents, like an older version. */
  isOld: boolean;
  begin(turn: StandInTurn): void;
  say(turn: StandInTurn, text: string): void;
  end(turn: StandInTurn, reply: string | undefined, status?: 'done' | 'failed'): void;
  /** A step of an intent waits for the user, or does not any more. */
  gate(turn: StandInTurn, intentId: string, state: 'asked' | 'approved'): void;
  /** A turn of an alarm of the executor, with the end of an intent. */
  wake(conversationId: string, intentId: string, reply: string): void;
};

export async function startConversingAgent(): Promise<ConversingAgent> {
  const events: { id: number; conversation: string; type: string; data: object }[] = [];
  /** The waiting questions, which a new reader gets first. */
  const gates = new Map<string, { conversation: string; data: object }>();
  const readers = new Set<{ response: ServerResponse; conversation: string | null; types: Set<string> }>();
  const ok = (response: ServerResponse, data: unknown, status = 200) => answer(response, status, { ok: true, data });
  const refused = (response: ServerResponse, status: number, code: string) =>
    answer(response, status, { ok: false, error: { code, message: code, retryable: false } });
  const at = '2026-11-27T00:00:00.000Z';
  const viewOf = ({ body, userId: _, ...turn }: StandInTurn) => ({
    ...{ ...turn, origin: body.origin ?? 'user', message: body.message, payload: body.payload },
    ...{ sent_by: body.sent_by?.name, created_at: at, attempts: 1 },
  });
  const write = (response: ServerResponse, { id, type, data }: (typeof events)[number]) =>
    response.write(`id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  const publish = (turn: StandInTurn, type: string, data: object) => {
    const { conversation_id: conversation, id: turn_id } = turn;
    const event = {
      id: events.length + 1,
      conversation,
      type,
      data: { conversation_id: conversation, turn_id, ...data },
    };
    events.push(event);
    for (const reader of readers)
      if ((reader.conversation ?? conversation) === conversation && reader.types.has(type))
        write(reader.response, event);
  };
  const publishTurn = (turn: StandInTurn) =>
    publish(turn, 'turn', { status: turn.status, attempts: 1, origin: turn.body.origin ?? 'user' });

  const http = await startHttpAgent((call, response) => {
    const { method, path, query, headers, text } = call;
    if (path === '/healthz') return answer(response, 200, { ok: true, data: { status: 'ok', busy: false, queued: 0 } });
    if (method === 'POST' && path === '/chat') {
      const body = JSON.parse(text) as StandInTurn['body'];
      if (agent.isOld && body.sent_by !== undefined) return refused(response, 400, 'invalid_request');
      const known = agent.turns.find((turn) => body.fire_id !== undefined && turn.body.fire_id === body.fire_id);
      const turn: StandInTurn = known ?? {
        id: `turn-${agent.turns.length + 1}`,
        conversation_id: String(body.conversation_id ?? `c-${agent.turns.length}`),
        ...{ body, userId: String(headers['x-matrix-user']), status: 'queued' },
      };
      ok(response, { conversation_id: turn.conversation_id, turn_id: turn.id, deduped: known !== undefined }, 202);
      if (known) return;
      agent.turns.push(turn);
      publishTurn(turn);
      const reply = agent.replyTo(turn);
      if (reply !== undefined) agent.end(turn, reply);
      return;
    }
    if (path === '/events') {
      const conversation = query.get('conversation_id');
      const types = new Set((query.get('types') ?? 'turn,say,gate').split(','));
      const after = Number(headers['last-event-id'] ?? query.get('last_event_id') ?? events.length);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': open\n\n');
      for (const { conversation: at, data } of types.has('gate') ? gates.values() : [])
        if ((conversation ?? at) === at) response.write(`event: gate\ndata: ${JSON.stringify(data)}\n\n`);
      for (const event of events)
        if (event.id > after && (conversation ?? event.conversation) === event.conversation && types.has(event.type))
          write(response, event);
      const reader = { response, conversation, types };
      readers.add(reader);
      response.on('close', () => readers.delete(reader));
      return;
    }
    const [, turnPath] = /^\/turns\/([^/]+)\/cancel$/.exec(path) ?? [];
    if (turnPath !== undefined) {
      const turn = agent.turns.find(({ id }) => id === turnPath);
      if (!turn) return refused(response, 404, 'not_found');
      if (turn.status === 'queued' || turn.status === 'running') {
        turn.status = 'interrupted';
        publishTurn(turn);
      }
      return ok(response, viewOf(turn));
    }
    const [, conversation, , turnId] = /^\/conversations\/([^/]+)(\/turns\/([^/]+))?$/.exec(path) ?? [];
    const inside = agent.turns.filter((turn) => turn.conversation_id === conversation);
    if (conversation === undefined || inside.length === 0) return refused(response, 404, 'not_found');
    if (turnId !== undefined) {
      const turn = inside.find(({ id }) => id === turnId);
      return turn ? ok(response, viewOf(turn)) : refused(response, 404, 'not_found');
    }
    const last_event_id = events.findLast((event) => event.conversation === conversation)?.id ?? 0;
    const dates = { created_at: at, last_activity_at: at };
    ok(response, { id: conversation, turn_count: inside.length, ...dates, turns: inside.map(viewOf), last_event_id });
  });
  const agent: ConversingAgent = Object.assign(http, {
    turns: [] as StandInTurn[],
    replyTo: () => undefined,
    isOld: false,
    begin(turn: StandInTurn) {
      turn.status = 'running';
      publishTurn(turn);
    },
    say(turn: StandInTurn, text: string) {
      const offset = turn.reply?.length ?? 0;
      turn.reply = `${turn.reply ?? ''}${text}`;
      publish(turn, 'say', { offset, text });
    },
    end(turn: StandInTurn, reply: string | undefined, status: 'done' | 'failed' = 'done') {
      Object.assign(turn, { status, ...(reply !== undefined && { reply }) });
      publishTurn(turn);
    },
    gate(turn: StandInTurn, intentId: string, state: 'asked' | 'approved') {
      const { conversation_id, id: turn_id } = turn;
      const data = { intent_id: intentId, node_id: 'n1', state };
      if (state === 'asked')
        gates.set(intentId, { conversation: conversation_id, data: { conversation_id, turn_id, ...data } });
      else gates.delete(intentId);
      publish(turn, 'gate', data);
    },
    wake(conversationId: string, intentId: string, reply: string) {
      const body = { message: 'it has ended', origin: 'chronos', payload: { intent_id: intentId } };
      const turn: StandInTurn = {
        ...{
          id: `turn-${agent.turns.length + 1}`,
          conversation_id: conversationId,
          body,
          userId: '',
          status: 'queued',
        },
      };
      agent.turns.push(turn);
      agent.end(turn, reply);
    },
  });
  return agent;
}
