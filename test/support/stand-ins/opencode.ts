/**
 * Stand-in for `opencode serve`: sessions, messages that are answered one at a time, and the state of sessions. As in
 * the real one, the answer to a message is the last message of the assistant, whose `parentID` is the message's id.
 */
import { answer, type HttpAgent, startHttpAgent } from './http-agent.ts';

type Message = { info: Record<string, unknown>; parts: Record<string, unknown>[] };

export type StandInOpencode = HttpAgent & {
  sessions: Map<string, Message[]>;
  busy: Set<string>;
  /** Resolves when a turn may end; at once without it. */
  hold: Promise<void> | undefined;
  /** Started turns, by message id. */
  turns: string[];
  /** The text of the assistant's message; `undefined`: there is none. */
  reply: ((text: string) => Partial<Message> | undefined) | undefined;
};

export async function startStandInOpencode(): Promise<StandInOpencode> {
  let made = 0;
  const agent = (await startHttpAgent(async ({ method, path, text }, response) => {
    if (path === '/session/status')
      return answer(response, 200, Object.fromEntries([...server.busy].map((id) => [id, { type: 'busy' }])));
    if (path === '/session' && method === 'POST') {
      const id = `ses_${String(++made).padStart(26, '0')}`;
      server.sessions.set(id, []);
      return answer(response, 200, { id, title: JSON.parse(text).title });
    }
    const [, id = ''] = /^\/session\/([^/]+)\/message$/.exec(path) ?? [];
    const messages = server.sessions.get(decodeURIComponent(id));
    if (!messages)
      return answer(response, 404, { name: 'NotFoundError', data: { message: `Session not found: ${id}` } });
    if (method === 'GET') return answer(response, 200, messages);
    const { messageID, parts } = JSON.parse(text);
    server.turns.push(messageID);
    messages.push({ info: { id: messageID, role: 'user', sessionID: id }, parts });
    server.busy.add(id);
    await server.hold;
    server.busy.delete(id);
    const well = {
      parts: [{ type: 'step-start' }, { type: 'text', text: `heard ${Buffer.byteLength(parts[0].text)} bytes` }],
    };
    const reply: Partial<Message> | undefined = server.reply ? server.reply(parts[0].text) : well;
    if (!reply) return answer(response, 500, { name: 'UnknownError', data: { message: 'the loop broke' } });
    const info = {
      id: `${messageID}a`,
      role: 'assistant',
      parentID: messageID,
      finish: 'stop',
      time: { created: 1, completed: 2 },
    };
    const message = { info: { ...info, ...reply.info }, parts: reply.parts ?? [] };
    messages.push(message);
    return answer(response, 200, message);
  })) as StandInOpencode;
  const server = Object.assign(agent, {
    sessions: new Map<string, Message[]>(),
    busy: new Set<string>(),
    hold: undefined,
    turns: [] as string[],
    reply: undefined,
  }) as StandInOpencode;
  return server;
}
