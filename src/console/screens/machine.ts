/** The machine of the user: its state, the end of its log, and the actions start, suspend and restore. */
import { html } from 'hono/html';
import { formatDuration } from '../../kit/clock/duration.ts';
import { toReveilleError } from '../../wire/errors.ts';
import type { MachineChangeView } from '../../wire/machine.ts';
import { spendingText } from '../../wire/usage.ts';
import { csrfField, empty, missing, type Page, pageHead } from '../page.ts';
import { type Redirect, type RequestContext, there } from '../request-context.ts';
import { type Html, NOTHING, shown } from '../shown.ts';
import { type LocalContext, time } from '../times.ts';

const RUNNING: Readonly<Record<string, readonly [mark: string, text: string]>> = {
  ready: ['good', 'running'],
  asleep: ['calm', 'asleep'],
  starting: ['held', 'starting'],
  stopping: ['held', 'stopping'],
};
const STATES: Readonly<Record<string, readonly [mark: string, text: string]>> = {
  suspended: ['failed', 'suspended: wakes are refused until it is restored'],
  provisioning: ['held', 'provisioning: wakes wait'],
  deleted: ['failed', 'deleted'],
};

const BY = { router: 'the router', admin: 'an operator', person: 'you' } as const;

const act = (verb: string, name: string, csrf: string, style = ''): Html =>
  html`<form method="post" action="machine/${verb}" class="inline" id="machine-${verb}">${csrfField(csrf)}<button class="${style}">${name}</button></form>`;

async function changesOf({ backend }: RequestContext): Promise<readonly MachineChangeView[]> {
  const { changes } = await there(backend.machines).changes(backend.user, 10);
  return changes;
}

const change = ({ at, action, fields, actor, reason }: MachineChangeView, here: LocalContext): Html => {
  const named = fields.slice(0, 4).join(', ');
  const omitted = fields.length - 4;
  const what = fields.length === 0 ? '' : ` (${named}${omitted > 0 ? ` and ${omitted} more` : ''})`;
  const why = reason === undefined ? NOTHING : html`: ${shown(reason)}`;
  return html`<li class="row"><span class="name">${shown(`${action}${what}`)} by ${BY[actor]}${why}</span><span class="when">${time(at, here)}</span></li>`;
};

/** A page does not wait longer for the agent's servers. */
const SERVERS_MS = 2000;

/** The servers of a running agent at which the user must sign in. */
async function signInsOf({
  backend,
  clock,
  signal,
}: RequestContext): Promise<readonly { alias: string; why: string }[]> {
  const limit = new AbortController();
  const cancel = clock.after(SERVERS_MS, () => limit.abort());
  try {
    return (await there(backend.agent).tools(AbortSignal.any([signal, limit.signal]))).sign_in ?? [];
  } finally {
    cancel();
  }
}

export async function machineScreen(context: RequestContext): Promise<Page> {
  const { backend, here, session } = context;
  const looksAt = ['machines'];
  if ('missing' in backend.machines)
    return {
      screen: 'machine',
      title: 'Machine',
      main: html`${pageHead('Machine')}${missing('The machine is not available', backend.machines.missing)}`,
    };
  const machine = await backend.machines.there.show(backend.user).catch((thrown: unknown) => {
    if (toReveilleError(thrown).code === 'not_found') return undefined;
    throw thrown;
  });
  if (!machine) {
    const next = html`Your agent needs a machine. Create one with <code>reveille machine put</code>`;
    return {
      screen: 'machine',
      title: 'Machine',
      looksAt,
      main: html`${pageHead('Machine')}${empty('No machine', next)}`,
    };
  }
  const isReady = machine.running === 'ready';
  const [changes, signIns, log] = await Promise.all([
    changesOf(context).catch(() => []),
    isReady ? signInsOf(context).catch(() => []) : [],
    'there' in backend.machineLog ? backend.machineLog.there().catch(() => undefined) : undefined,
  ]);
  const [mark, text] = STATES[machine.state] ??
    RUNNING[machine.running ?? ''] ?? ['calm', machine.running ?? machine.state];
  const used = machine.spending
    ? html`<div><dt>Used in 24 hours</dt><dd>${spendingText(machine.spending)}</dd></div>`
    : NOTHING;
  const isSuspended = machine.state === 'suspended';
  const isAwake = machine.running === 'ready' || machine.running === 'starting';
  const lines =
    log === undefined
      ? html`<p class="dim">${'missing' in backend.machineLog ? backend.machineLog.missing : 'The log cannot be read now.'}</p>`
      : log.length === 0
        ? html`<p class="dim">The log is empty.</p>`
        : html`<pre class="log" tabindex="0" aria-label="Log">${log.map((line) => html`${shown(line)}\n`)}</pre>`;
  const rows = signIns.map(({ alias, why }) => html`<div><dt>${shown(alias)}</dt><dd>${shown(why)}</dd></div>`);
  const needsSignIn =
    rows.length === 0 ? NOTHING : html`<h2>Servers that need sign-in</h2><dl class="facts card">${rows}</dl>`;
  const actions = html`${isSuspended || isAwake || 'missing' in backend.agent ? NOTHING : act('wake', 'Start', session.csrf, 'primary')}${isSuspended ? act('restore', 'Restore', session.csrf, 'primary') : html`<a class="button danger" href="machine/suspend">Suspend</a>`}`;
  const main = html`${pageHead('Machine', html`<span class="state ${mark}">${text}</span>`, actions)}
<dl class="facts card"><div><dt>Provider</dt><dd>${machine.provider}</dd></div><div><dt>Stops when idle</dt><dd>${machine.idle_seconds === undefined ? 'never' : `after ${formatDuration(machine.idle_seconds * 1000)}`}</dd></div>${used}<div><dt>Created</dt><dd>${time(machine.created_at, here)}</dd></div><div><dt>Changed</dt><dd>${time(machine.updated_at, here)}</dd></div></dl>
${needsSignIn}<h2>Log</h2>${lines}
<h2>Changes</h2>${changes.length === 0 ? html`<p class="dim">No changes recorded.</p>` : html`<ul class="rows changes-list">${changes.map((one) => change(one, here))}</ul>`}`;
  return { screen: 'machine', title: 'Machine', main, looksAt };
}

/** `machine/suspend`: the confirmation. */
export async function confirmSuspend({ session }: RequestContext): Promise<Page> {
  const main = html`<section class="question"><h1>Suspend the machine</h1><p>The machine stops, and every wake is refused until you restore it. Alarms that fire in the meantime fail, some of them finally.</p>
<div class="actions">${act('suspend', 'Suspend', session.csrf, 'danger')}<a class="button" href="machine">Cancel</a></div></section>`;
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

/** A request to the agent starts the machine. */
export async function wakeMachine({ backend, session }: RequestContext): Promise<Redirect> {
  await there(backend.agent).conversations({ limit: 1 });
  session.messages.success('The machine is running.');
  return { to: 'machine' };
}
