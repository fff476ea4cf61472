/** What a page shows of a question before it can be answered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { html } from 'hono/html';
import { digestsOf, type WaitingGate } from '../../executor/client.ts';
import { argumentLines, wholeLines } from '../../kit/text/visible.ts';
import { encodeJson } from '../../wire/json.ts';
import type { RequestContext } from '../request-context.ts';
import type { WaitingQuestion } from '../waiting-questions.ts';
import { questionSection } from './question.ts';

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

test('the arguments that say what a call does stand whole above the form of the answer', () => {
  const head = ['May this tool be called?', '  | "shell/run"', 'Effect: it runs commands, by the manifest (shell).'];
  const effect = ['Command, whole:', ...wholeLines(command, 'command')];
  // An executor of an earlier version does not say which arguments matter.
  for (const lines of [[...head, ...effect], head]) {
    const page = shown(pageOf(lines, { command }));
    const [above, below] = page.split('<form id="answer">');
    assert.ok(below !== undefined && above!.includes(`"command": ${JSON.stringify(command)}`), page);
    assert.match(above!, /<div class="effect">/);
  }
});
