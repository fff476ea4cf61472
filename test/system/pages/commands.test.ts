/** Runs every command of the documentation: those of the pages, and the examples in the help of commands. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sharedOwner } from '../../support/temporary.ts';
import { NOT_HERE, RULES, type Rule } from './rules.ts';
import { type Shell, startShell } from './shell.ts';
import { ROOT, type Shown, shownInHelp, shownOnPages } from './shown.ts';
import { World } from './world.ts';

const owner = sharedOwner();
let world: World;
let shell: Shell;
let all: Shown[];
const outside = process.cwd();

before(async () => {
  all = [...shownOnPages(), ...(await shownInHelp())];
  world = await World.start(owner);
  process.chdir(world.work);
  const { home, env } = world;
  shell = await startShell(owner, {
    home,
    env,
    stay: (args, given) => {
      if (STAYS.test(args.join(' '))) return world.stay(args, given, true);
      return FOLLOWS.test(args.join(' ')) ? world.stay(args, given, false) : undefined;
    },
  });
});
after(async () => {
  process.chdir(outside);
  await owner.end();
});

/** Commands that run until the end of the test, and commands that are interrupted after their first output. */
const STAYS = /^(?:chronosd|router|executor|notifier|neo(?! (?:tools|server)))\b/;
const FOLLOWS = /^(?:ledger|capability|chronometric|alarm watch)|--follow/;

/** The command without its comment. */
const bare = (line: string) => line.replace(/\s+# .*$/m, '');
const isOurs = (line: string) => /\b(?:reveille|npm)\b/.test(line);
const reasonOf = (command: string) => [...NOT_HERE.keys()].find((shown) => shown.test(command));
const ruleOf = (command: string) => RULES.find(({ shown }) => shown.test(command));

const needed = new Set<unknown>();
const done = new Set<string>();

/** Runs a command of a page. @returns the errors */
async function faultsOf(command: string, exports: string, rule: Rule | undefined): Promise<string[]> {
  const line = (await rule?.run?.(command, world)) ?? command;
  const typed = line.replace(/^npx /, '');
  // The same text with another home or other secrets is another command.
  if (done.has(exports + typed)) return [];
  done.add(exports + typed);
  const { ran, failed } = await shell.run(exports + line);
  const wrong = ran.filter(({ status }) => status !== (rule?.status ?? 0));
  if (ran.length === 0) return [`${line}: ${failed ?? 'it ran nothing of ours'}`];
  return [
    ...wrong.map(({ status, stdout, stderr }) => `${line}: ${status}, ${stderr || stdout}`),
    ...(failed === undefined ? [] : [`${line}: ${failed}`]),
  ];
}

async function runAll(when: Rule['after']): Promise<string[]> {
  const faults: string[] = [];
  for (const { at, commands } of all) {
    let exports = '';
    for (const command of commands.map(bare)) {
      const reason = reasonOf(command);
      const rule = ruleOf(command);
      needed.add(reason).add(reason ? undefined : rule);
      if (reason) continue;
      // Variables of a block apply to the rest of the block.
      if (command.startsWith('export ')) exports += `${(await rule?.run?.(command, world)) ?? ''}\n`;
      else if (isOurs(command) && rule?.after === when) {
        const found = await faultsOf(command, exports, rule).catch((thrown) => [`${command}: ${thrown}`]);
        faults.push(...found.map((fault) => `${at}: ${fault}`));
      }
    }
    await world.endStaying();
  }
  return faults;
}

test('every command of the documentation ends with the expected status', async () => {
  assert.deepEqual(await runAll(undefined), []);
  assert.ok(done.size > 100, `${done.size} commands`);
});

test('docs/start/first-alarm.md shows the output of "reveille up"', () => {
  const shown = /^Reveille [\s\S]*?^```/m.exec(readFileSync(join(ROOT, 'docs', 'start', 'first-alarm.md'), 'utf8'))![0];
  const parts = [...shown.matchAll(/^ {2}(\w+) +\S.*? {2,}(\S.*)$/gm)].map(([, part, text]) => [part!, text!]);
  assert.equal(parts.length, 5);
  for (const [part, text] of parts) assert.match(world.output, new RegExp(`^ {2}${part} .* {2}${text}$`, 'm'));
});

test('the page of the HTTP API shows /chat in ten lines of Python and of TypeScript, which talk to the agent', async () => {
  const page = readFileSync(join(ROOT, 'docs', 'reference', 'api.md'), 'utf8');
  const { token } = await world.json('user', 'token', await world.user());
  const env = { ...world.env, REVEILLE_TOKEN: token };
  for (const [language, program, ...flags] of [
    ['python', 'python3', '-'],
    ['ts', process.execPath, '--input-type=module-typescript', '-'],
  ] as const) {
    const [, code] = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(page)!;
    assert.ok(code!.trim().split('\n').length <= 10, language);
    const input = code!.replace('http://127.0.0.1:8087', world.run.public_url!);
    const { status, stdout, stderr } = spawnSync(program, flags, { input, env, encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /conversation_id/);
  }
});

test('so do commands after which alarms wake another agent', async () => {
  assert.deepEqual(await runAll('agents'), []);
});

test('so do commands that need a stopped stack', async () => {
  await world.end();
  assert.deepEqual(await runAll('stop'), []);
});

test('every rule and every omitted command is still in the documentation', () => {
  assert.deepEqual(
    [...NOT_HERE.keys(), ...RULES].filter((one) => !needed.has(one)),
    [],
  );
});
