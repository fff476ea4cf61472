/** Stand-in for an agent that speaks A2A 1.0 over HTTP and JSON: tasks whose states a test sets. */
import { answer, type HttpAgent, startHttpAgent } from './http-agent.ts';

export type StandInTask = {
  id: string;
  contextId: string;
  status: { state: string; message?: object };
  artifacts?: object[];
};

export type StandInA2a = HttpAgent & {
  tasks: Map<string, StandInTask>;
  /** The state in which a message's task begins; `message`: it is answered without a task. */
  begins: string;
  /** Refuses contexts that it did not make. */
  ownContexts: boolean;
  /** Sets the state of every task, with a message of the agent. */
  setState(state: string, answerText?: string): void;
};

const said = (text: string) => ({ role: 'ROLE_AGENT', messageId: 'm', parts: [{ text }] });

export async function startStandInA2a(): Promise<StandInA2a> {
  let made = 0;
  const agent = (await startHttpAgent(({ method, path, headers, text }, response) => {
    if (path === '/.well-known/agent-card.json') return answer(response, 200, { name: 'stand-in' });
    if (headers['a2a-version'] !== '1.0') return answer(response, 400, { error: { message: 'VERSION_NOT_SUPPORTED' } });
    const [, id] = /^\/tasks\/(.+)$/.exec(path) ?? [];
    if (id !== undefined) {
      const task = server.tasks.get(decodeURIComponent(id));
      return task ? answer(response, 200, task) : answer(response, 404, { error: { message: 'TASK_NOT_FOUND' } });
    }
    if (path !== '/message:send' || method !== 'POST') return answer(response, 404, {});
    const { message } = JSON.parse(text);
    const known = [...server.tasks.values()].some(({ contextId }) => contextId === message.contextId);
    if (server.ownContexts && message.contextId !== undefined && !known)
      return answer(response, 400, { error: { message: 'contextId was not made by this agent' } });
    const contextId = message.contextId ?? `ctx-${++made}`;
    const answerText = `heard ${Buffer.byteLength(message.parts[0].text)} bytes`;
    if (server.begins === 'message') return answer(response, 200, { message: { ...said(answerText), contextId } });
    const task: StandInTask = { id: `task-${++made}`, contextId, status: { state: server.begins } };
    if (server.begins === 'TASK_STATE_COMPLETED') task.artifacts = [{ artifactId: 'a', parts: [{ text: answerText }] }];
    server.tasks.set(task.id, task);
    return answer(response, 200, { task });
  })) as StandInA2a;
  const server = Object.assign(agent, {
    tasks: new Map<string, StandInTask>(),
    begins: 'TASK_STATE_COMPLETED',
    ownContexts: false,
    setState(state: string, answerText?: string) {
      for (const task of server.tasks.values()) {
        task.status = { state, ...(answerText === undefined ? {} : { message: said(answerText) }) };
      }
    },
  }) as StandInA2a;
  return server;
}
