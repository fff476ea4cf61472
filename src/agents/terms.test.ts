import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary.ts';
import { Presets, type TerminalPreset } from './preset.ts';
import { termArguments, termsProblem } from './terms.ts';

const shipped = new Presets('/nowhere');
const spec = (preset: string, args: string[] = []) => ({ preset, args });
const problem = (name: string, terms: object, args: string[] = []) =>
  termsProblem(shipped.get(name), spec(name, args), terms);

test('a program gets the model and the tools in the arguments that its vendor documents', () => {
  const claude = shipped.get('claude') as TerminalPreset;
  assert.deepEqual(termArguments(claude, undefined), []);
  assert.deepEqual(termArguments(claude, { model: 'haiku', tools: ['Read', 'Grep'], deliver: ['phone'] }), [
    ...['--model', 'haiku', '--tools', 'Read,Grep', '--strict-mcp-config'],
  ]);
  assert.deepEqual(termArguments(claude, { tools: [] }), ['--tools', '', '--strict-mcp-config']);
  for (const name of ['codex', 'gemini'])
    assert.deepEqual(termArguments(shipped.get(name) as TerminalPreset, { model: 'm' }), ['--model', 'm']);
});

test('a turn is refused where the agent could not keep to its terms, and a plain turn never is', () => {
  for (const name of shipped.names()) {
    assert.equal(problem(name, {}), undefined);
    assert.equal(termsProblem(shipped.get(name), spec(name), undefined), undefined);
    const limits = name === 'claude' || name === 'webhook';
    assert.equal(problem(name, { tools: ['Read'] }) === undefined, limits, name);
    assert.equal(problem(name, { tools: [] }) === undefined, limits, name);
    assert.equal(problem(name, { model: 'vendor/model' }) === undefined, name !== 'a2a', name);
    assert.match(problem(name, { model: '--yolo' })!, /must not begin with a dash/);
  }
  assert.equal(
    problem('codex', { tools: ['shell'] }),
    'the turn was not begun: tools (got "shell") cannot be limited for the preset codex; omit them',
  );
  assert.match(problem('opencode', { model: 'haiku' })!, /must be a provider and its model/);
});

test('Claude Code is not run with tools beside the list', () => {
  assert.match(problem('claude', { tools: ['Read', 'mcp__bank__pay'] })!, /cannot be limited to "mcp__bank__pay"$/);
  assert.match(problem('claude', { tools: ['Read,Bash'] })!, /built-in tools/);
  assert.match(problem('claude', { tools: ['Read'] }, ['--mcp-config', 'x.json'])!, /registered with --mcp-config/);
  assert.match(problem('claude', { tools: ['Read'] }, ['--tools=Bash'])!, /registered with --tools=Bash/);
  assert.match(problem('claude', { tools: ['Read'] }, ['--verbose', '--'])!, /registered with --;/);
  assert.equal(problem('claude', { model: 'haiku' }, ['--mcp-config', 'x.json']), undefined);
});

test('the form of a preset’s own names applies to the whole name, and allows no further argument', (t) => {
  const folder = temporaryFolder(t);
  const tools = { arguments: ['--only', '<tools>'], names: '[a-z,-]+' };
  const preset = {
    kind: 'terminal',
    about: 'x',
    bin: 'x',
    install: 'x',
    new: { stdin: ['<args>', '-'] },
    reads: 'plain-text',
    tools,
  };
  writeFileSync(join(folder, 'own.json'), JSON.stringify(preset));
  const own = new Presets(folder).get('own');
  const refusal = (...names: string[]) => termsProblem(own, spec('own'), { tools: names });
  assert.equal(refusal('read', 'web-search'), undefined);
  for (const name of ['read,bash', '--all', 'read bash', 'Read', 'reаd', 'read\n', '*'])
    assert.match(refusal(name) ?? '', /cannot be limited to/, name);
  for (const [name, part] of Object.entries({ new: { stdin: ['-'] }, resume: { argument: ['<message>'] } })) {
    writeFileSync(join(folder, 'lost.json'), JSON.stringify({ ...preset, [name]: part }));
    const wrong = new RegExp(`lost.json cannot be used: ${name}.${Object.keys(part)[0]} must have "<args>"`);
    assert.throws(() => new Presets(folder).get('lost'), wrong);
  }
});
