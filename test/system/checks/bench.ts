/** A router with a sandbox, a site that checks may call, and one that they may not. */
import { mkdirSync, realpathSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Sandbox } from '../../../src/kit/process/isolation.ts';
import { eventsOf, fixtureMachine, startBench } from '../../../src/router/testing/bench.ts';
import { CHECK_HEADER, type CheckNews, readVerdict } from '../../../src/wire/check-verdict.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

export type Site = {
  url: string;
  hits: number;
  answer: (request: IncomingMessage, response: ServerResponse) => void;
};

export async function startSite(t: TestContext): Promise<Site> {
  const server = createServer((request, response) => {
    site.hits++;
    site.answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const site: Site = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hits: 0,
    answer: (_, response) => response.end('fine'),
  };
  atEnd(t, () => {
    server.close();
    server.closeAllConnections();
  });
  return site;
}

export const SECRET = 'a-key-of-the-model';
export const PATH = '/usr/local/bin:/usr/bin:/bin';

/** @param spec more members of the machine's specification */
export async function checksBench(t: TestContext, spec: object = { checks: 'commands' }) {
  const home = realpathSync(temporaryFolder(t));
  const work = join(home, 'work');
  mkdirSync(work);
  const [site, closed] = [await startSite(t), await startSite(t)];
  const hidden = [join(home, 'router'), join(home, 'keys')];
  for (const path of hidden) mkdirSync(path);
  const router = await startBench(t, {
    sandbox: new Sandbox('auto', { hidden, grantable: [], kept: [], home }, PATH),
    environment: { ...process.env, PATH: `${PATH}:${process.env.PATH}` },
    checkSecrets: (userId) => (userId === 'alice' ? join(home, 'router', 'check-secrets.json') : undefined),
    settings: { ROUTER_CHECK_ALLOW: new URL(site.url).host, ROUTER_DATA_DIR: join(home, 'router') },
  });
  const machine = fixtureMachine(work, undefined, {}, { MODEL_KEY: SECRET });
  const put = (more: object) =>
    router.put('alice', { ...machine, spec: { ...machine.spec, cwd: work, sandbox: false, ...more } });
  await put(spec);
  return {
    ...{ home, work, site, closed, router, put },
    /** The number of starts of the machine. */
    starts: () => eventsOf(work, 'start').length,
    /** What the agent got of the check of the latest wake. */
    news: (): CheckNews | undefined => {
      const body = eventsOf(work, 'chat').at(-1)?.body;
      return body === undefined
        ? undefined
        : (JSON.parse(Buffer.from(body, 'base64').toString()) as { check?: CheckNews }).check;
    },
    /** Wakes with a check, and returns the verdict. */
    async decide(check: object, state: object = {}, more: object = {}) {
      const answer = await router.wake('alice', { check, check_state: state, ...more });
      return { status: answer.status, text: answer.text, verdict: readVerdict(answer.headers.get(CHECK_HEADER)) };
    },
    refusal: async (check: object, by_person = false) => {
      const answer = await router.send('POST', '/internal/checks', 'wake-token-of-the-tests', {
        user_id: 'alice',
        ...{ check, by_person },
      });
      return answer.status === 200 ? undefined : `${answer.status} ${answer.json.error.message}`;
    },
  };
}
export type ChecksBench = Awaited<ReturnType<typeof checksBench>>;
