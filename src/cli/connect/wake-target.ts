/**
 * The wake target that `connect` registers: a terminal client in one folder. The earlier target is kept, so that `--undo`
 * restores it.
 */
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { z } from 'zod';
import { wait } from '../../kit/clock/clock.ts';
import { readPrivateFile, replacePrivateFile } from '../../kit/identity/private-file.ts';
import { type MachineView, machinePutSchema } from '../../router/machines/machine-schema.ts';
import { descriptorOf } from '../../router/providers/descriptors.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { MachineTurnView } from '../../wire/machine-turn.ts';
import { alarmClient, userOf } from '../access/chronos.ts';
import { routerClient } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { machineOf } from '../flags/machine-flags.ts';
import { readRun } from '../home/home.ts';
import { existingMachine, isOwnNeo, putOwnNeo } from '../up/own-neo.ts';

/** Clients that the router can start for a turn. */
const WAKEABLE: ReadonlySet<string> = new Set(['claude', 'codex', 'gemini']);

export const isWakeable = (client: string): boolean => WAKEABLE.has(client);

const recordSchema = z.object({
  client: z.string(),
  folder: z.string(),
  /** `neo`, `none`, or the earlier machine. */
  before: z.union([z.enum(['neo', 'none']), machinePutSchema]),
});
export type WakeTarget = z.output<typeof recordSchema>;

/** The wake target that `connect` registered; `undefined` without one. */
export function readWakeTarget({ home }: Pick<CliContext, 'home'>): WakeTarget | undefined {
  const text = readPrivateFile(home.wakeTargetFile);
  if (text === undefined) return undefined;
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new ReveilleError('invalid_request', `${home.wakeTargetFile} is damaged; remove it`, { cause });
  }
}

const isPresent = (machine: MachineView | undefined): machine is MachineView =>
  machine !== undefined && machine.state !== 'deleted';

const isOf = ({ provider, spec }: MachineView, client: string, folder: string) =>
  provider === 'command' && spec.preset === client && spec.cwd === folder;

/** The current target of wakes, as text; `undefined` when no router of this home runs. */
export async function whereWakesGo(context: CliContext): Promise<string | undefined> {
  if (readRun(context.home) === undefined) return undefined;
  const machine = await existingMachine(routerClient(context), userOf(context, undefined));
  if (!isPresent(machine)) return 'no machine';
  if (isOwnNeo(machine)) return 'the local Neo';
  const { preset, cwd } = machine.spec;
  if (machine.provider === 'command' && typeof cwd === 'string') return `${String(preset)} in ${cwd}`;
  const [[, where]] = descriptorOf(machine.provider).facts(machine.spec);
  return `the ${machine.provider} machine ${where ?? ''}`.trim();
}

/**
 * Registers a client in a folder as this installation's agent.
 *
 * @throws ReveilleError `conflict` when another agent is registered whose token would be lost; `unavailable` without a
 *   router
 */
export async function registerWakeTarget(context: CliContext, client: string, folder: string): Promise<string[]> {
  const router = routerClient(context);
  const user = userOf(context, undefined);
  const machine = await existingMachine(router, user);
  const known = readWakeTarget(context);
  let before: WakeTarget['before'] = 'none';
  if (isPresent(machine)) {
    const { provider, spec } = machine;
    if (isOwnNeo(machine)) before = 'neo';
    else if (provider !== 'command' || !isWakeable(String(spec.preset)))
      throw new ReveilleError(
        'conflict',
        `wakes go to ${await whereWakesGo(context)}, which --undo could not restore; to replace it: reveille machine put --provider ${client} --dir ${folder}`,
      );
    else if (known && isOf(machine, known.client, known.folder)) before = known.before;
    else before = machinePutSchema.parse({ provider, spec });
  }
  const answer = await router.put(user, machineOf({ provider: client, dir: folder }, folder));
  replacePrivateFile(
    context.home.wakeTargetFile,
    `${JSON.stringify({ client, folder, before } satisfies WakeTarget)}\n`,
  );
  return answer.warnings ?? [];
}

/** Restores the earlier target; a machine that was changed since stays. @returns the target of wakes */
export async function undoWakeTarget(context: CliContext, { client, folder, before }: WakeTarget): Promise<string> {
  const router = routerClient(context);
  const user = userOf(context, undefined);
  const machine = await existingMachine(router, user);
  if (isPresent(machine) && isOf(machine, client, folder)) {
    if (before === 'neo') await putOwnNeo(context, router, { provider: 'neo' }, undefined);
    else if (before === 'none') await router.remove(user);
    else await router.put(user, before);
  }
  rmSync(context.home.wakeTargetFile, { force: true });
  return (await whereWakesGo(context)) ?? 'nowhere';
}

const TEST_MESSAGE =
  'This is a test of the alarm clock. Answer with one short sentence, use no tool, and end the turn.';
const POLL_MS = 250;
const TEST_LIMIT_MS = 180_000;

/** The result of the test: the session that the second alarm resumed. */
export type WakeTest = { readonly session: string; readonly replies: readonly string[] };

/**
 * Sets two alarms, one after the other: the first starts a session, the second resumes it.
 *
 * @throws ReveilleError `unavailable` when a wake or a turn fails, a turn does not end, or does not resume the session
 */
export async function testWakeTarget(context: CliContext): Promise<WakeTest> {
  const { clock } = context;
  const router = routerClient(context);
  const user = userOf(context, undefined);
  const chronos = alarmClient(context);
  const conversation = `connect-test-${randomUUID()}`;
  const turns: MachineTurnView[] = [];
  for (const step of ['starts', 'resumes']) {
    const alarm = {
      kind: 'once',
      delay_seconds: 1,
      wake_message: TEST_MESSAGE,
      conversation_id: conversation,
    } as const;
    const { id } = await chronos.createAlarm({ ...alarm, label: 'test of connect' });
    const until = clock.now() + TEST_LIMIT_MS;
    for (;;) {
      const { turns: found } = await router.turns(user, { conversation_id: conversation });
      const ended = found.filter(({ status }) => status !== 'queued' && status !== 'running');
      if (found.length > turns.length && ended.length === found.length) {
        turns.push(found[0]!);
        break;
      }
      const refused = found.length > turns.length ? undefined : (await chronos.getAlarm(id)).last_error;
      if (refused !== undefined || clock.now() > until) {
        // It would fire again after this command has ended.
        await chronos.cancelAlarm(id);
        const why = refused ?? 'its turn has not ended; see: reveille machine turns';
        throw new ReveilleError('unavailable', `the test alarm that ${step} a session: ${why}`, { retryable: false });
      }
      await wait(clock, POLL_MS);
    }
    const { status, error } = turns.at(-1)!;
    if (status !== 'done')
      throw new ReveilleError('unavailable', `the test alarm that ${step} a session: ${error ?? status}`, {
        retryable: false,
      });
  }
  const [first, second] = turns as [MachineTurnView, MachineTurnView];
  if (first.session === undefined || first.session !== second.session)
    throw new ReveilleError('unavailable', 'the second test alarm did not resume the session of the first');
  return { session: first.session, replies: turns.map(({ reply = '' }) => reply) };
}
