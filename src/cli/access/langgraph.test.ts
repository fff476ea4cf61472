import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { startInstallation } from '../../../test/support/installation.ts';
import type { Users } from '../../router/public/users.ts';
import type { CliProcess } from '../cli-process.ts';
import { createContext } from '../context.ts';
import { localLanggraph } from './langgraph.ts';

test('at "reveille up", crons are alarms of its user, with the program as their author', async (t) => {
  const house = await startInstallation(t);
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const env = { REVEILLE_HOME: house.home.path, HOME: house.home.path };
  const context = await createContext({ env, stdout, stderr } as unknown as CliProcess, {});
  const authenticate = (token: string) => ({ user: token, credential: 'c0ffee', rights: '' });
  const users = { authenticate } as unknown as Users;
  const publicUrl = () => house.router.public.url;
  const [service] = localLanggraph(
    context,
    house.label,
  )({ users, enter: () => () => {}, publicUrl, endings: () => house.router.public.endings, isShared: () => true });
  const create = (token: string) =>
    service!.answer(
      new Request('http://localhost/langgraph/runs/crons', {
        ...{ method: 'POST', headers: { 'x-api-key': token } },
        body: JSON.stringify({ assistant_id: 'news', schedule: '@daily', input: 'What is new?' }),
      }),
      { remoteAddress: '127.0.0.1', closing: new AbortController().signal },
    );
  const made = await create(house.label);
  assert.equal(made.status, 200);
  const { cron_id } = (await made.json()) as { cron_id: string };
  const alarm = await house.client.getAlarm(cron_id);
  assert.equal(alarm.wake_message, 'What is new?');
  assert.deepEqual(alarm.set_by, { kind: 'client', client_id: 'langgraph c0ffee', name: 'LangGraph' });
  const other = await create('someone');
  assert.equal(other.status, 403);
  assert.deepEqual(service!.figures(), { answered: 1, refused: 1, unauthorized: 0 });
});
