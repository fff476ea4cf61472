/** An agent on the server half of the A2A SDK, with the transports of a test. Its tasks end on request. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgentCard, Message, Task, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import { AgentEvent, type AgentExecutor, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

export type A2aServer = {
  readonly url: string;
  /** Messages that an executor got. */
  readonly heard: { messageId: string; contextId: string; text: string; token: string | undefined }[];
  /** Whether the answer to a message is a running task, or a message. */
  begins: 'task' | 'message';
  /** Ends the running tasks. */
  finish(): void;
  close(): Promise<void>;
};

type Binding = 'JSONRPC' | 'HTTP+JSON' | 'GRPC';

/** @param version of the protocol; `0.3` uses the compatibility layer of the SDK */
export async function startA2aServer(
  bindings: readonly Binding[],
  { version = '1.0', cardUrl }: { version?: '1.0' | '0.3'; cardUrl?: string } = {},
): Promise<A2aServer> {
  const app = express();
  const http = await new Promise<Server>((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening));
  });
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const heard: A2aServer['heard'] = [];
  const ends = new Set<() => void>();
  let token: string | undefined;
  const executor: AgentExecutor = {
    async execute({ userMessage, taskId, contextId }, bus) {
      const part = userMessage.parts[0]?.content;
      const text = part?.$case === 'text' ? part.value : '';
      heard.push({ messageId: userMessage.messageId, contextId, text, token });
      const parts = [{ text: `heard ${Buffer.byteLength(text)} bytes` }];
      if (server.begins === 'message') {
        bus.publish(
          AgentEvent.message(Message.fromJSON({ messageId: 'answer', contextId, role: 'ROLE_AGENT', parts })),
        );
        return;
      }
      const status = { state: 'TASK_STATE_WORKING' };
      bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status })));
      await new Promise<void>((resolve) => ends.add(resolve));
      const message = { messageId: 'end', role: 'ROLE_AGENT', parts };
      const end = { taskId, contextId, status: { state: 'TASK_STATE_COMPLETED', message } };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(end)));
    },
    cancelTask: () => Promise.resolve(),
  };
  const paths = { JSONRPC: '/rpc', 'HTTP+JSON': '/rest', GRPC: '/grpc' };
  const supportedInterfaces = bindings.map((protocolBinding) => ({
    url: `${cardUrl ?? url}${paths[protocolBinding]}`,
    protocolBinding,
    protocolVersion: version,
    tenant: '',
  }));
  const agentCard = AgentCard.fromJSON({
    ...{ name: 'agent', description: 'an agent of a test', version: '1.0.0', supportedInterfaces },
    ...{ capabilities: { streaming: false }, defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] },
  });
  const requestHandler = new DefaultRequestHandler(agentCard, new InMemoryTaskStore(), executor);
  const options = {
    requestHandler,
    userBuilder: UserBuilder.noAuthentication,
    legacyCompat: { enabled: version === '0.3' },
  };
  app.use((request, _response, next) => {
    token = request.headers.authorization;
    next();
  });
  app.use('/.well-known/agent-card.json', agentCardHandler({ ...options, agentCardProvider: requestHandler }));
  if (bindings.includes('JSONRPC')) app.use(paths.JSONRPC, jsonRpcHandler(options));
  if (bindings.includes('HTTP+JSON')) app.use(paths['HTTP+JSON'], restHandler(options));
  const server: A2aServer = {
    ...{ url, heard, begins: 'task' },
    finish() {
      for (const end of ends) end();
      ends.clear();
    },
    close: () =>
      new Promise((resolve) => {
        server.finish();
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
  return server;
}
