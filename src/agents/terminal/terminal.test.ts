import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Presets, type TerminalPreset } from '../preset.ts';
import { statePaths } from './program.ts';
import { commandLine } from './terminal.ts';

const shipped = new Presets('/nowhere');
const preset = (name: string) => shipped.get(name) as TerminalPreset;
const ID = '3f0d5d1e-0000-4000-8000-000000000001';

test('the included presets have the arguments that their vendors document', () => {
  const commandOf = (name: string, session?: string) => commandLine(preset(name), 'words', session, ['--more']);
  assert.deepEqual(commandOf('claude'), {
    arguments: ['-p', '--output-format', 'json', '--more'],
    input: 'words',
  });
  assert.deepEqual(commandOf('claude', ID), {
    arguments: ['-p', '--resume', ID, '--output-format', 'json', '--more'],
    input: 'words',
  });
  assert.deepEqual(commandOf('codex'), { arguments: ['exec', '--more', '-', '--json'], input: 'words' });
  assert.deepEqual(commandOf('codex', ID), {
    arguments: ['exec', '--more', 'resume', ID, '-', '--json'],
    input: 'words',
  });
  assert.deepEqual(commandOf('gemini', ID), {
    arguments: ['--resume', ID, '-p', 'Take up the message above.', '--output-format', 'json', '--more'],
    input: 'words',
  });
});

/** A program that takes its prompt only as an argument. */
function argumentsAlone(name: string): TerminalPreset {
  const { stdin: _, ...begins } = preset(name).new;
  const { stdin: __, ...resumes } = preset(name).resume!;
  return { ...preset(name), new: begins, resume: resumes };
}

test('a prompt goes over standard input when the program reads it, and never where other users can see it', () => {
  for (const name of shipped.names()) {
    const one = shipped.get(name);
    if (one.kind !== 'terminal') continue;
    for (const session of [undefined, ID]) {
      const command = commandLine(one, 'words of the agent', session, []);
      assert.ok('arguments' in command && command.input === 'words of the agent', name);
      assert.ok(!command.arguments.some((argument) => argument.includes('words of the agent')), name);
    }
  }
  const command = commandLine(argumentsAlone('claude'), 'words', undefined, []);
  assert.deepEqual(command, { arguments: ['-p', 'words', '--output-format', 'json'], input: undefined });
});

test('a prompt that cannot be an argument goes over standard input, or is rejected', () => {
  const bare = argumentsAlone('claude');
  for (const [prompt, because] of [
    ['-rf /', /begins with a dash/],
    ['a\0b', /contains a NUL/],
    ['ü'.repeat(70_000), /has 140000 bytes with its payload, and an argument holds 131071 at most/],
  ] as const) {
    const command = commandLine(preset('claude'), prompt, undefined, []);
    assert.deepEqual(command, { arguments: ['-p', '--output-format', 'json'], input: prompt });
    const refused = commandLine(bare, prompt, undefined, []);
    assert.ok('impossible' in refused && because.test(refused.impossible));
  }
});

test('placeholders in prompt, session or arguments are not expanded', () => {
  const command = commandLine(argumentsAlone('claude'), '<session> <args> $&', '$&$1', ['<message>', '<session>']);
  assert.ok('arguments' in command);
  assert.deepEqual(command.arguments, [
    ...['-p', '--resume', '$&$1', '<session> <args> $&', '--output-format', 'json', '<message>', '<session>'],
  ]);
});

test('the id of a session is never parsed as an option of the program', () => {
  for (const name of ['claude', 'codex', 'gemini'])
    for (const one of [preset(name), { ...argumentsAlone('claude'), name }]) {
      const command = commandLine(one, 'words', '--dangerously-skip-permissions', []);
      assert.ok('impossible' in command && /session whose id begins with a dash/.test(command.impossible), name);
    }
});

test('each included terminal preset names the paths that its agent writes in the sandbox, and never a home or a start file', () => {
  const presets = new Presets('/not-there');
  const terminal = presets.names().flatMap((name) => {
    const preset = presets.get(name);
    return preset.kind === 'terminal' ? [preset] : [];
  });
  assert.deepEqual(
    terminal.map(({ name }) => name),
    ['claude', 'codex', 'gemini'],
  );
  for (const { name, state, read_only: readOnly } of terminal) {
    const paths = statePaths(state, { HOME: '/home/ada' });
    assert.ok(paths.includes(`/home/ada/.${name}/`), name);
    assert.ok(paths.every((path) => path.startsWith('/home/ada/.')));
    assert.ok(paths.every((path) => !/\/\.(?:ssh|bashrc|profile|config)\/?$/.test(path)));
    assert.ok(statePaths(readOnly, { HOME: '/home/ada' }).every((path) => path.startsWith(`/home/ada/.${name}/`)));
  }
  assert.deepEqual(statePaths(['$CODEX_HOME/', '/srv/x/'], { CODEX_HOME: '/c' }), ['/c/', '/srv/x/']);
});
