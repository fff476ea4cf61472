/** The person's machine: asleep, awake, or why not; the last lines that it wrote; waking and suspending it. */
import { html } from 'hono/html';
import { toReveilleError } from '../../wire/errors.ts';
import type { MachineChangeView } from '../../wire/machine-change.ts';
import { csrfField, empty, missing, type Page } from '../page.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { type Here, time } from '../times.ts';
import { type Redirect, there, type RequestContext } from '../request-context.ts';

const RUNNING: Readonly<Record<string, readonly [mark: string, words: string]>> = {
  ready: ['good', 'awake'],
  asleep: ['calm', 'asleep'],
  starting: ['held', 'is being started'],
  stopping: ['held', 'is going to sleep'],
};
const STATES: Readonly<Record<string, readonly [mark: string, words: string]>> = {
  suspended: ['failed', 'suspended: nothing wakes it until it is restored'],
  provisioning: ['held', 'is being prepared: wakes wait'],
  deleted: ['failed', 'deleted'],
};

const BY = { router: 'the router itself', admin: 'an operator', person: 'you' } as const;

const act = (verb: string, words: string, csrf: string, look = ''): Html =>
  html`<form method="post" action="machine/${verb}" class="inline" id="machine-${verb}">${csrfField(csrf)}<button class="${look}">${words}</button></form>`;

async function changesOf({ backend }: RequestContext): Promise<readonly MachineChangeView[]> {
  const { changes } = await there(backend.machines).changes(backend.user, 10);
  return changes;
}

const change = ({ at, action, fields, actor, reason }: MachineChangeView, here: Here): Html => {
  const named = fields.slice(0, 4).join(', ');
  const left = fields.length - 4;
  const what = fields.length === 0 ? '' : ` (${named}${left > 0 ? ` and ${left} more` : ''})`;
  const why = reason === undefined ? NOTHING : html`: ${shown(reason)}`;
  return html`<li>${time(at, here)} ${shown(`${action}${what}`)}, by ${BY[actor]}${why}</li>`;
};

export async function machineScreen(context: RequestContext): Promise<Page> {
  const { backend, here, session } = context;
  const looksAt = ['machines'];
  if ('missing' in backend.machines)
    return {
      screen: 'machine',
      title: 'Machine',
      main: html`<h1>Machine</h1>${missing('Not to be seen from here', backend.machines.missing)}`,
    };
  const machine = await backend.machines.there.show(backend.user).catch((thrown: unknown) => {
    if (toReveilleError(thrown).code === 'not_found') return undefined;
    throw thrown;
  });
  if (!machine) {
    const next = html`Its agent has no place to live yet: <code>reveille machine put --help</code> says how to give it one.`;
    return {
      screen: 'machine',
      title: 'Machine',
      looksAt,
      main: html`<h1>Machine</h1>${empty('There is no machine', next)}`,
    };
  }
  const [changes, log] = await Promise.all([
    changesOf(context).catch(() => []),
    'there' in backend.machineLog ? backend.machineLog.there().catch(() => undefined) : undefined,
  ]);
  const [mark, words] = STATES[machine.state] ??
    RUNNING[machine.running ?? ''] ?? ['calm', machine.running ?? machine.state];
  const isSuspended = machine.state === 'suspended';
  const isAwake = machine.running === 'ready' || machine.running === 'starting';
  const lines =
    log === undefined
      ? html`<p class="dim">${'missing' in backend.machineLog ? backend.machineLog.missing : 'Its log cannot be read now.'}</p>`
      : log.length === 0
        ? html`<p class="dim">It has written nothing yet.</p>`
        : html`<pre class="log" tabindex="0" aria-label="Last lines">${log.map((line) => html`${shown(line)}\n`)}</pre>`;
  const main = html`<h1>Machine</h1>
<p><span class="state ${mark}">${words}</span></p>
<div class="actions">${isSuspended || isAwake || 'missing' in backend.agent ? NOTHING : act('wake', 'Wake it', session.csrf, 'primary')}${isSuspended ? act('restore', 'Restore', session.csrf, 'primary') : html`<a class="button danger" href="machine/suspend">Suspend</a>`}</div>
<dl class="facts"><div><dt>kind</dt><dd>${machine.provider}</dd></div><div><dt>goes to sleep</dt><dd>${machine.idle_seconds === undefined ? 'never by itself' : `after ${machine.idle_seconds} s without use`}</dd></div><div><dt>registered</dt><dd>${time(machine.created_at, here)}</dd></div><div><dt>changed</dt><dd>${time(machine.updated_at, here)}</dd></div></dl>
<h2>Last lines</h2>${lines}
<h2>What was done to it</h2>${changes.length === 0 ? html`<p class="dim">Nothing is on record.</p>` : html`<ul class="plain">${changes.map((one) => change(one, here))}</ul>`}`;
  return { screen: 'machine', title: 'Machine', main, looksAt };
}

/** `machine/suspend`: the question. */
export async function askSuspend({ session }: RequestContext): Promise<Page> {
  const main = html`<section class="question"><h1>Suspend the machine</h1><p>It is stopped, and every wake is refused until you restore it: alarms that ring meanwhile fail, and some are given up.</p>
<div class="actions">${act('suspend', 'Suspend', session.csrf, 'danger')}<a class="button" href="machine">Leave it</a></div></section>`;
  return { screen: 'machine', title: 'Suspend', main };
}

export async function suspendMachine({ backend, session }: RequestContext): Promise<Redirect> {
  const machines = there(backend.machines);
  await machines.suspend(backend.user);
  session.messages.success('The machine is suspended.', async () => {
    await machines.restore(backend.user);
    return 'The machine is restored.';
  });
  return { to: 'machine' };
}

export async function restoreMachine({ backend, session }: RequestContext): Promise<Redirect> {
  await there(backend.machines).restore(backend.user);
  session.messages.success('The machine is restored.');
  return { to: 'machine' };
}

/** A look at its conversations wakes it, as any request of a person does. */
export async function wakeMachine({ backend, session }: RequestContext): Promise<Redirect> {
  await there(backend.agent).conversations({ limit: 1 });
  session.messages.success('The machine is awake.');
  return { to: 'machine' };
}
