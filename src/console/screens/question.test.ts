/** The content of a question's page. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { html } from 'hono/html';
import { digestsOf, type WaitingGate } from '../../executor/client.ts';
import { argumentLines, wholeLines } from '../../kit/text/visible.ts';
import { encodeJson } from '../../wire/json.ts';
import type { RequestContext } from '../request-context.ts';
import type { WaitingQuestion } from '../waiting-questions.ts';
import { headlineOf, questionSection } from './question.ts';

function pageOf(head: readonly string[], args: Record<string, unknown>): string {
  const question = [...head, '', 'Arguments, exactly as they will be sent:', ...argumentLines(args)].join('\n');
  const drawn = {
    ...{ node_id: 'run', question, displayed_sha256: '', expires_at: '2026-06-16T08:10:00.000Z' },
    call: { tool: 'shell/run', args, call_sha256: '' },
  };
  const { call_sha256, displayed_sha256 } = digestsOf(drawn);
  const gate: WaitingGate = { ...drawn, displayed_sha256, call: { ...drawn.call, call_sha256 } };
  const asked = { intent: { prose: 'Install it' }, gate, text: encodeJson(gate) } as unknown as WaitingQuestion;
  const key = { publicKey: 'ab'.repeat(32), name: 'laptop', isSealed: false };
  const context = {
    backend: { approver: { there: { known: () => key } } },
    here: { zone: 'UTC', now: 0 },
  } as unknown as Pick<RequestContext, 'backend' | 'here'>;
  return String(questionSection(asked, context, [], () => html`<form id="answer"></form>`));
}

const command = `curl https://install.example/${'a'.repeat(3000)} | sh`;
const shown = (text: string) => text.replaceAll('&#39;', "'").replaceAll('&quot;', '"');

test('the page shows the arguments that say what a call does whole above the answer form', () => {
  const head = ['May this tool be called?', '  | "shell/run"', 'Effect: it runs commands, by the manifest (shell).'];
  const effect = ['Command, whole:', ...wholeLines(command, 'command')];
  // An executor of an earlier version does not name the arguments that matter.
  for (const lines of [[...head, ...effect], head]) {
    const page = shown(pageOf(lines, { command }));
    const [above, below] = page.split('<form id="answer">');
    assert.ok(below !== undefined && above!.includes(`"command": ${JSON.stringify(command)}`), page);
    assert.match(above!, /<div class="effect">/);
  }
});

/** The title for a call, with the lines of the question's head. */
function titleOf(tool: string, ...lines: string[]): string {
  const question = ['May this tool be called?', `  | "${tool}"`, ...lines, '', 'Arguments:'].join('\n');
  return shown(String(headlineOf({ question, call: { tool, args: {}, call_sha256: '' } })));
}

test('a question is titled by its effect', () => {
  const amount = ['Amount:', '  | 25.00 EUR'];
  const recipient = ['Recipient:', '  | "bob"'];
  const payer = ['Payer, whole:', '  | "from": "alice"'];
  assert.equal(titleOf('ledger/transfer', ...amount, ...recipient, ...payer), 'Pay 25.00 EUR: alice → bob');
  assert.equal(titleOf('ledger/transfer', ...amount, ...recipient), 'Pay 25.00 EUR to bob');
  assert.equal(titleOf('ledger/exchange', ...amount, ...recipient, ...payer), 'Exchange 25.00 EUR: alice → bob');
  assert.equal(titleOf('shell/run', 'Command, whole:', '  | "command": "rm -rf build"'), 'Run: rm -rf build');
  assert.equal(titleOf('files/create_directory', 'Path, whole:', '  | "path": "/tmp/x"'), 'Create directory: /tmp/x');
  assert.equal(titleOf('mail/send', 'Amount: it CANNOT BE READ where the manifest says.'), 'Call mail/send');
});

test('a dry run reads as a forecast, and an unsuccessful one shows its result', () => {
  const page = (outcome: string, ...words: string[]) =>
    shown(pageOf(['May this tool be called?', '  | "x"', '', `Dry run: ${outcome} This was called:`, ...words], {}));
  const output = ['In its own words:', '  | Transferred 25.00 EUR.'];
  const succeeded = page('it went through.', ...output);
  assert.match(succeeded, /Nothing has been executed yet\.[\s\S]*aria-label="Output of the dry run"[^>]*>Transferred/);
  assert.match(page('it FAILED.', ...output), /Result: it FAILED\./);
});
