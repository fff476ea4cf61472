import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { calling, modelEndpoint, type Script, saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { neoChild } from '../../../src/neo/testing/neo-child.ts';
import { accepted, ask, settledTurns } from '../../../src/neo/testing/workbench.ts';
import { reveille } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { EXECUTOR_TOKEN, startExecutorProcess } from '../rail/executor-process.ts';
import { site } from './bench.ts';

const USER = 'alice';
const TASK = 'Commit the file notes.md with the message "Note the price".';

/** The agent reads, edits and delegates; the compiler makes two calls of the task. */
const script =
  (page: string, workspace: string): Script =>
  (response, request) => {
    const { model, messages } = request.body;
    if (model === 'compiler') {
      const call = (id: string, tool: string, args: object) => ({ id, kind: 'call', tool, args });
      const nodes = [
        call('stage', 'git/add', { paths: ['notes.md'] }),
        call('record', 'git/commit', { message: 'Note the price' }),
      ];
      const plan = { id: 'both', kind: 'sequence', nodes };
      return calling({ name: 'submit_intent', args: { verb: 'commit', plan } })(response, request);
    }
    const results = messages.filter(({ role }) => role === 'tool');
    const price = /The price is ([\d.]+\d)/.exec(results[0]?.content ?? '')?.[1];
    const steps = [
      calling({ name: 'fetch__fetch', args: { url: page } }),
      calling({ name: 'fs__write_file', args: { path: join(workspace, 'notes.md'), content: `price: ${price}\n` } }),
      calling({ name: 'core_execute', args: { intent: TASK } }),
    ];
    return (steps[results.length] ?? saying(results.at(-1)!.content))(response, request);
  };

test('Neo reads a page, edits a file and has the executor commit it; nobody is asked, and the receipt verifies', async (t) => {
  const home = temporaryFolder(t);
  const workspace = join(home, 'workspace');
  mkdirSync(workspace);
  const git = (...args: string[]) => execFileSync('git', args, { cwd: workspace, encoding: 'utf8' });
  git('init', '--quiet', '--initial-branch=main');
  const port = await site(t, (_, response) =>
    response.setHeader('content-type', 'text/html').end('<h1>Market</h1><p>The price is 12.50.</p>'),
  );
  const endpoint = await modelEndpoint(t, script(`http://127.0.0.1:${port}/`, workspace));
  const executor = await startExecutorProcess(home, {
    EXECUTOR_MODEL: 'compiler',
    EXECUTOR_MODEL_BASE_URL: endpoint.baseUrl,
    EXECUTOR_WORKSPACE: workspace,
  });
  t.after(() => executor.end('SIGKILL'));
  const neo = await neoChild(join(home, 'neo'), {
    ...{ NEO_MANIFEST: '', NEO_WORKSPACE: workspace, NEO_FETCH_ALLOW: `127.0.0.1:${port}`, HOME: home },
    ...{ NEO_MODEL: 'agent', NEO_MODEL_BASE_URL: endpoint.baseUrl, NEO_CHEAP_MODEL: 'none' },
    ...{ NEO_EXECUTOR_URL: executor.url, NEO_EXECUTOR_TOKEN: EXECUTOR_TOKEN, MATRIX_USER_ID: USER },
  });
  t.after(() => neo.end('SIGKILL'));
  await accepted(neo, { message: 'Write the price down, and commit it.', conversation_id: 'market' });
  const [turn] = await settledTurns(neo, 'market');
  assert.match(turn?.reply ?? '', /was completed/, executor.log() + neo.log());
  assert.equal(readFileSync(join(workspace, 'notes.md'), 'utf8'), 'price: 12.50\n');
  assert.equal(git('log', '--format=%an: %s').trim(), 'Agent: Note the price');
  assert.equal(git('status', '--short').trim(), '');

  const [, path] = /GET (\/intents\/\S+\/receipt)/.exec(turn?.reply ?? '') ?? [];
  const { text } = await ask(neo, path!, {});
  const { data } = JSON.parse(text) as { data: { public_key: string } };
  const verified = await reveille(home, ['receipt', 'verify', '--key', data.public_key, '--json'], { input: text });
  assert.equal(verified.status, 0, verified.stderr + verified.stdout);
  assert.doesNotMatch(text, /gate\.asked/);
  assert.match(text, /changes of the workspace are committed/);
});
