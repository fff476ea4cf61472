/**
 * A fleet in small: chronosd that lets only enrolled keys in, an executor, and `reveille router` as a process of its own
 * with TLS and the console, in front of a daemon for each person.
 */
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ChronosClient, createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { startChronos } from '../../../src/chronos/daemon.ts';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { generateKey } from '../../../src/kit/identity/keys.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { createRouterClient, type RouterClient } from '../../../src/router/client.ts';
import { makeAuthority } from '../../support/certificates.ts';
import { ADMIN_TOKEN } from '../../support/cluster/approval.ts';
import { type Outcome, reveille, startReveille } from '../../support/command-line.ts';
import { atEnd, type Owner, temporaryFolder } from '../../support/temporary.ts';
import { startedExecutor } from '../executor/executor-bench.ts';

export type Sent = { method?: string; headers?: Record<string, string>; body?: string };
export type Got = { status: number; text: string; cookie: string | undefined; headers: Record<string, unknown> };

export type Person = {
  readonly name: string;
  readonly token: string;
  /** The id of the token. */
  readonly id: string;
  /** Speaks as this person's agent. */
  readonly agent: ChronosClient;
};

const secret = (name: string) => `${name}-of-this-fleet-0123456789`;
const NEO_TOKEN = secret('machine');

export type Fleet = Awaited<ReturnType<typeof startFleet>>;

/** @param settings of the router, besides those of the bench */
export async function startFleet(owner: Owner, settings: Readonly<Record<string, string>> = {}) {
  const folder = temporaryFolder(owner);
  const authority = await makeAuthority(folder, 'fleet');
  const { certificate, key } = await authority.issue();
  const trusted = readFileSync(authority.file);
  const operator: Record<string, string> = {
    CHRONOS_ADMIN_TOKEN: secret('chronos-admin'),
    ROUTER_ADMIN_TOKEN: secret('router-admin'),
    EXECUTOR_ADMIN_TOKEN: ADMIN_TOKEN,
    MATRIX_CHRONOS_TOKEN: secret('transport'),
    REVEILLE_TLS_CA: authority.file,
  };
  const chronos = await startChronos({
    ...{ clock: systemClock, log: silentLogger },
    config: parseChronosConfig({
      ...{ CHRONOS_PORT: '0', CHRONOS_DATA_DIR: join(folder, 'chronos'), CHRONOS_ENROLLMENT: 'required' },
      ...{ CHRONOS_TOKEN: secret('transport'), CHRONOS_ADMIN_TOKEN: secret('chronos-admin') },
      ...{ CHRONOS_AGENT_AUTH_SECRET: secret('auth'), CHRONOS_WAKE_TOKEN: secret('wake') },
      CHRONOS_ROUTER_WAKE_URL: 'http://127.0.0.1:1/internal/wake',
    }),
  });
  atEnd(owner, () => chronos.close());
  const executor = await startedExecutor(owner as TestContext, folder);
  const env = {
    ...{ ROUTER_PORT: '0', ROUTER_DATA_DIR: join(folder, 'router'), ROUTER_WAKE_TOKEN: secret('wake') },
    ...{ ROUTER_ADMIN_TOKEN: secret('router-admin'), ROUTER_CONSOLE: '1', ROUTER_CHRONOS_URL: chronos.url },
    ...{ ROUTER_CHRONOS_TOKEN: secret('transport'), ROUTER_EXECUTOR_URL: executor.url },
    ...{ ROUTER_PUBLIC_TLS_CERT: certificate, ROUTER_PUBLIC_TLS_KEY: key, REVEILLE_TLS_CA: authority.file },
    ...settings,
  };
  const startRouter = async (more: Record<string, string> = {}) => {
    const daemon = startReveille(owner, join(folder, 'router-home'), ['router', '--json'], {
      env: { ...env, ...more },
    });
    await daemon.until(({ stdout }) => stdout.includes('\n'));
    const { url, public_url } = JSON.parse(daemon.outcome.stdout.split('\n')[0]!) as Record<string, string>;
    return { daemon, url: url!, origin: public_url! };
  };
  let router = await startRouter();
  operator.MATRIX_CHRONOS_URL = chronos.url;
  operator.NEO_EXECUTOR_URL = executor.url;

  const command = async (args: readonly string[], more: Record<string, string> = {}): Promise<Outcome> => {
    const at = { ROUTER_PORT: new URL(router.url).port };
    return reveille(join(folder, 'operator'), args, { env: { ...operator, ...at, ...more } });
  };
  const run = async (...args: string[]): Promise<string> => {
    const { status, stdout, stderr } = await command(args);
    if (status !== 0) throw new Error(`reveille ${args.join(' ')} ended with ${status}: ${stderr}`);
    return stdout;
  };

  const fleet = {
    ...{ chronos, executor, folder, command, run, certificate, trusted, secrets: { admin: secret('chronos-admin') } },
    get origin() {
      return router.origin;
    },
    get machines(): RouterClient {
      return createRouterClient({ url: router.url, token: secret('router-admin') });
    },
    /** Ends the router and starts it on the same data, on another port. */
    async restart(): Promise<void> {
      await router.daemon.end('SIGTERM');
      router = await startRouter();
    },
    /** A person with a machine that sleeps, an agent with alarms of its own, and a token. */
    async person(name: string): Promise<Person> {
      await fleet.machines.put(name, {
        provider: 'process',
        spec: {
          command: [process.execPath, PROGRAM, 'neo'],
          env: { NEO_DATA_DIR: join(folder, `neo-${name}`), NEO_MANIFEST: 'none', MATRIX_USER_ID: name },
        },
        token: `${NEO_TOKEN}-${name}`,
      });
      const identity = agentIdentity(name, generateKey());
      await run('agent', 'enroll', '--label', name, '--public-key', identity.publicKeyHex);
      const { id, token } = JSON.parse(await run('user', 'add', name, '--json')) as { id: string; token: string };
      const place = { url: chronos.url, token: secret('transport'), identity, principal: holdPrincipal() };
      return { name, id, token, agent: createChronosClient(place) };
    },
    /** Sends exactly the given headers, including `Host` and `Origin`. */
    send(path: string, { method = 'GET', headers = {}, body }: Sent = {}): Promise<Got> {
      return new Promise((resolve, reject) => {
        const sent = request(
          router.origin + path,
          { method, headers, ca: trusted, servername: 'localhost' },
          (response) => {
            let text = '';
            response.setEncoding('utf8').on('data', (part: string) => {
              text += part;
            });
            response.on('end', () =>
              resolve({
                ...{ status: response.statusCode ?? 0, text, headers: response.headers },
                cookie: response.headers['set-cookie']?.[0],
              }),
            );
          },
        );
        sent.on('error', reject);
        sent.end(body);
      });
    },
    /** Signs in with a token. */
    async enter(token: string, zone = 'Europe/Berlin') {
      const got = await fleet.send('/sign-in', {
        method: 'POST',
        headers: { origin: router.origin, 'content-type': 'application/x-www-form-urlencoded' },
        body: `token=${encodeURIComponent(token)}&zone=${encodeURIComponent(zone)}`,
      });
      return { ...got, ...visitOf(got, fleet) };
    },
    /** An open stream of a page, and whether it has ended. */
    follow(path: string, cookie: string) {
      const seen = { text: '', ended: false, status: 0 };
      const sent = request(router.origin + path, { headers: { cookie }, ca: trusted }, (response) => {
        seen.status = response.statusCode ?? 0;
        response.setEncoding('utf8').on('data', (part: string) => {
          seen.text += part;
        });
        response.on('close', () => {
          seen.ended = true;
        });
      });
      sent.on('error', () => {});
      sent.end();
      atEnd(owner, () => sent.destroy());
      return seen;
    },
  };
  return fleet;
}

type Sender = { send(path: string, sent?: Sent): Promise<Got>; readonly origin: string };

/** The session that an answer has opened. */
export function visitOf({ cookie = '', text }: Pick<Got, 'cookie' | 'text'>, fleet: Sender) {
  const [sent = ''] = cookie.split(';');
  const base = /href="(\/~[A-Za-z0-9_-]{22}\/)upcoming"/.exec(text)?.[1] ?? '';
  const get = (path: string, headers: Record<string, string> = {}) =>
    fleet.send(`${base}${path}`, { headers: { cookie: sent, ...headers } });
  return {
    ...{ base, sent, get },
    /** A form of a page of this session. */
    async post(path: string, fields: Record<string, string>): Promise<Got> {
      const csrf = /data-csrf="([^"]+)"/.exec((await get('status')).text)?.[1] ?? '';
      return fleet.send(`${base}${path}`, {
        method: 'POST',
        headers: { cookie: sent, origin: fleet.origin, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ csrf, ...fields }).toString(),
      });
    },
  };
}
