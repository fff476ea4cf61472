/**
 * A Docker engine for tests: the Engine API over a real Unix socket or TCP, with containers that have a real daemon.
 */
import type { ServerResponse } from 'node:http';
import { createFakeDaemon, type FakeDaemon } from './fake-daemon.ts';
import { type FakeProviderApi, type SeenRequest, sendJson, startFakeProviderApi } from './fake-provider-api.ts';

export type ContainerStatus = 'created' | 'running' | 'paused' | 'restarting' | 'removing' | 'exited' | 'dead';

export type FakeContainer = {
  status: ContainerStatus;
  exitCode: number;
  error: string;
  oomKilled: boolean;
  env: string[];
  tty: boolean;
  /** The result of its health check; it has none without it. */
  health: string | undefined;
  /** Its printed output. */
  log: string;
  networkMode: string;
  /** How its port is published; not at all without it. */
  published: { hostIp: string } | undefined;
  /** Its address on a network of the engine. */
  address: string;
  /** Its program ends right after the start, with this code and this output. */
  diesAtOnce: { code: number; says: string } | undefined;
  /** Number of starts. */
  starts: number;
  readonly daemon: FakeDaemon;
};

export type FakeDocker = FakeProviderApi & {
  container(name: string): FakeContainer;
  /** Actions of another client on a container. */
  set(name: string, status: ContainerStatus): Promise<void>;
  remove(name: string): void;
};

export type FakeDockerOptions = {
  listen: { path: string } | { host: string; port: number };
  containers: readonly string[];
  /** The port of the daemon inside. */
  port: number;
  apiVersions?: { min: string; max: string };
};

/** A container's id, derived from its name. */
const idOf = (name: string) => Buffer.from(name).toString('hex').padEnd(64, '0');

function numberOf(version: string): number {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major * 1000 + minor;
}

/** The frames of a log: standard error in two pieces, as an engine may cut it. */
function framed(text: string): Buffer {
  const half = Math.ceil(text.length / 2);
  return Buffer.concat(
    [text.slice(0, half), text.slice(half)].map((part) => {
      const header = Buffer.alloc(8);
      header.writeUInt8(2, 0);
      header.writeUInt32BE(Buffer.byteLength(part), 4);
      return Buffer.concat([header, Buffer.from(part)]);
    }),
  );
}

export async function startFakeDocker(options: FakeDockerOptions): Promise<FakeDocker> {
  const versions = options.apiVersions ?? { min: '1.44', max: '1.51' };
  const containers = new Map<string, FakeContainer>();
  for (const name of options.containers) {
    containers.set(name, {
      status: 'exited',
      exitCode: 0,
      error: '',
      oomKilled: false,
      env: ['PATH=/usr/bin'],
      tty: false,
      health: undefined,
      log: '',
      networkMode: 'bridge',
      published: { hostIp: '127.0.0.1' },
      address: '',
      diesAtOnce: undefined,
      starts: 0,
      daemon: createFakeDaemon({ host: '127.0.0.1', samePort: false }),
    });
  }

  const inspection = (name: string, one: FakeContainer) => ({
    Id: idOf(name),
    Name: `/${name}`,
    State: {
      Status: one.status,
      Running: ['running', 'paused', 'restarting'].includes(one.status),
      Paused: one.status === 'paused',
      Restarting: one.status === 'restarting',
      OOMKilled: one.oomKilled,
      Dead: one.status === 'dead',
      ExitCode: one.exitCode,
      Error: one.error,
      ...(one.health === undefined ? {} : { Health: { Status: one.health, FailingStreak: 1, Log: [] } }),
    },
    Config: { Env: one.env, Tty: one.tty },
    HostConfig: { NetworkMode: one.networkMode },
    NetworkSettings: {
      Ports: {
        [`${options.port}/tcp`]:
          one.published && one.status === 'running'
            ? [{ HostIp: one.published.hostIp, HostPort: String(one.daemon.port) }]
            : null,
      },
      Networks: { bridge: { IPAddress: one.address, GlobalIPv6Address: '' } },
    },
  });

  const set = async (one: FakeContainer, status: ContainerStatus) => {
    if (status === 'running') await one.daemon.up();
    else if (status === 'paused') one.daemon.freeze();
    else await one.daemon.down();
    one.status = status;
  };

  const start = async (one: FakeContainer, response: ServerResponse) => {
    if (one.status === 'running' || one.status === 'restarting') return sendJson(response, 304);
    if (one.status === 'paused')
      return sendJson(response, 409, { message: 'cannot start a paused container, try unpause instead' });
    if (one.status === 'removing' || one.status === 'dead')
      return sendJson(response, 409, { message: 'container is marked for removal and cannot be started' });
    one.starts++;
    if (one.diesAtOnce) {
      one.status = 'exited';
      one.exitCode = one.diesAtOnce.code;
      one.log = one.diesAtOnce.says;
    } else await set(one, 'running');
    return sendJson(response, 204);
  };

  const act = async (action: string, name: string, one: FakeContainer, response: ServerResponse) => {
    const id = idOf(name);
    const refuse = (status: number, message: string) => sendJson(response, status, { message });
    switch (action) {
      case 'start':
        return start(one, response);
      case 'stop':
        if (one.status !== 'running' && one.status !== 'restarting' && one.status !== 'paused')
          return sendJson(response, 304);
        one.exitCode = 143;
        await set(one, 'exited');
        return sendJson(response, 204);
      case 'pause':
        if (one.status !== 'running') return refuse(409, `container ${id} is not running`);
        await set(one, 'paused');
        return sendJson(response, 204);
      case 'unpause':
        if (one.status !== 'paused') return refuse(500, `Container ${id} is not paused`);
        await set(one, 'running');
        return sendJson(response, 204);
      default:
        return refuse(404, 'page not found');
    }
  };

  const handle = async ({ action, method, url }: SeenRequest, response: ServerResponse): Promise<void> => {
    const version = /^\/v(\d+\.\d+)\//.exec(url.pathname)?.[1];
    if (version !== undefined && numberOf(version) < numberOf(versions.min)) {
      const message = `client version ${version} is too old. Minimum supported API version is ${versions.min}, please upgrade your client to a newer version`;
      return sendJson(response, 400, { message });
    }
    if (version !== undefined && numberOf(version) > numberOf(versions.max)) {
      const message = `client version ${version} is too new. Maximum supported API version is ${versions.max}`;
      return sendJson(response, 400, { message });
    }
    if (action === 'ping') {
      response.writeHead(200, { 'api-version': versions.max, 'content-type': 'text/plain' }).end('OK');
      return;
    }
    const given = /\/containers\/([^/]+)\//.exec(url.pathname)?.[1] ?? '';
    const name = [...containers.keys()].find((known) => known === given || idOf(known) === given) ?? given;
    const one = containers.get(name);
    if (!one) return sendJson(response, 404, { message: `No such container: ${name}` });
    if (action === 'inspect') return sendJson(response, 200, inspection(name, one));
    if (action === 'logs') {
      response.writeHead(200, { 'content-type': 'application/vnd.docker.multiplexed-stream' });
      response.end(one.tty ? one.log : framed(one.log));
      return;
    }
    return method === 'POST'
      ? act(action, name, one, response)
      : sendJson(response, 404, { message: 'page not found' });
  };

  const api = await startFakeProviderApi({
    listen: options.listen,
    actionOf(_method, path) {
      const last = path.split('/').at(-1) ?? '';
      return { _ping: 'ping', json: 'inspect' }[last] ?? last;
    },
    handle,
  });
  const container = (name: string) => containers.get(name)!;
  return {
    ...api,
    container,
    set: (name, status) => set(container(name), status),
    remove: (name) => void containers.delete(name),
    async close() {
      await api.close();
      for (const { daemon } of containers.values()) await daemon.down();
    },
  };
}
