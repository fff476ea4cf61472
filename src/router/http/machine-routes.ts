/** The registry's routes for operators: `/admin/machines` (docs/reference/routes.md). */
import type { Clock } from '../../kit/clock/clock.ts';
import { requireBearer } from '../../kit/http/bearer.ts';
import { readJson } from '../../kit/http/body.ts';
import { refuseAddress } from '../../kit/http/guarded-client.ts';
import { type HttpApp, type HttpContext, sendOk, serve } from '../../kit/http/handlers.ts';
import { randomSecret, signingSecret } from '../../kit/identity/secrets.ts';
import type { Logger } from '../../kit/log/log.ts';
import { machineTurnViewOf } from '../../turns/turn-view.ts';
import { LIST_LIMIT_DEFAULT } from '../../wire/alarm.ts';
import { budgetSchema } from '../../wire/budget.ts';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { machineChangeQuerySchema, machineListQuerySchema } from '../../wire/machine.ts';
import { machineTurnQuerySchema } from '../../wire/machine-turn.ts';
import { parseOrThrow, showValue } from '../../wire/validate.ts';
import type { AgentHost } from '../agent-host.ts';
import type { Budgets } from '../budget/budgets.ts';
import type { Fleet } from '../fleet.ts';
import {
  deleteMachine,
  hasDaemon,
  type Machine,
  putMachine,
  restoreMachine,
  rotateToken,
  startsOtherwise,
  suspendMachine,
  viewOf,
  withBudget,
} from '../machines/machine.ts';
import { machinePutSchema } from '../machines/machine-schema.ts';
import type { Registry } from '../machines/registry.ts';
import { descriptorOf, isSecretIn } from '../providers/descriptors.ts';
import { cannotRunAs } from '../providers/isolation.ts';
import { ROUTER_ROUTES } from './routes.ts';

/** @throws ReveilleError `invalid_request` for an invalid user id */
export function userIdOf(c: HttpContext): string {
  const given = c.req.param('user_id');
  const label = labelSchema.safeParse(given);
  if (label.success) return ownerOf(label.data);
  const why = label.error.issues[0]?.message;
  throw new ReveilleError('invalid_request', `user_id ${why} (got ${showValue(given)})`);
}

type MachineRoutesOptions = {
  registry: Registry;
  fleet: Fleet;
  agents: AgentHost;
  budgets: Budgets;
  adminToken: string | undefined;
  clock: Clock;
  log: Logger;
};

/** A state change of an existing machine at an instant. */
type Change = (machine: Machine, now: number) => Machine;

export function addMachineRoutes(app: HttpApp, options: MachineRoutesOptions): void {
  const { registry, fleet, agents, budgets, clock, log } = options;
  const running = (machine: Machine) => (hasDaemon(machine) ? fleet.running(machine) : agents.running(machine.userId));
  const view = (machine: Machine) => viewOf(machine, running(machine), budgets.shownOf(machine));

  const change = async (c: HttpContext, action: string, apply: Change): Promise<Machine> => {
    const userId = userIdOf(c);
    const machine = await registry.changeExisting(userId, apply, { actor: 'admin', action });
    log.info({ user_id: userId, action, state: machine.state }, 'machine changed');
    return machine;
  };

  /** Changes the state, then waits until no process of the machine runs. */
  const changeAndStop = async (c: HttpContext, action: string, apply: Change): Promise<Response> => {
    const machine = await change(c, action, apply);
    const why = `the machine was ${machine.state}`;
    await Promise.all([fleet.of(machine.userId).stop(), agents.stop(machine.userId, why)]);
    return sendOk(c, view(machine));
  };

  app.use('/admin/*', requireBearer(options.adminToken));

  serve(app, ROUTER_ROUTES.listMachines, (c) => {
    const query = parseOrThrow(machineListQuerySchema, c.req.query());
    const limit = query.limit ?? LIST_LIMIT_DEFAULT;
    const found = registry.list({
      limit: limit + 1,
      ...(query.state === undefined ? {} : { state: query.state }),
      ...(query.cursor === undefined ? {} : { after: query.cursor }),
    });
    const machines = found.slice(0, limit);
    const next_cursor = found.length > limit ? machines.at(-1)?.userId : undefined;
    return sendOk(c, { machines: machines.map(view), count: machines.length, next_cursor });
  });

  addTurnRoutes(app, agents.store);
  addChangeRoutes(app, registry);

  serve(app, ROUTER_ROUTES.getMachine, async (c) => {
    const userId = userIdOf(c);
    await budgets.refresh(registry.existing(userId));
    return sendOk(c, view(registry.existing(userId)));
  });

  serve(app, ROUTER_ROUTES.putMachine, async (c) => {
    const userId = userIdOf(c);
    const given = await readJson(c);
    const body = parseOrThrow(machinePutSchema, given, isSecretIn(given));
    if (body.budget) budgets.check(body.budget);
    const command = body.provider === 'command' ? body.spec : undefined;
    const why = 'run_as' in body.spec && body.spec.run_as ? cannotRunAs() : undefined;
    if (why !== undefined) throw new ReveilleError('invalid_request', `spec.run_as is not available here: ${why}`);
    refuseAddress('url' in body.spec ? body.spec.url : undefined, 'spec.url');
    const missing = command ? await agents.check(command) : [];
    let minted: string | undefined;
    const mint = () => {
      minted = command && agents.signs(command) ? signingSecret() : randomSecret();
      return minted;
    };
    let startChanged = false;
    const changed = (current: Machine | undefined) => {
      const after = putMachine(current, userId, body, clock.now(), mint);
      startChanged = current === undefined || startsOtherwise(current, after);
      return after;
    };
    const machine = await registry.change(userId, changed, { actor: 'admin', action: 'put' });
    if (startChanged) budgets.machineChanged(userId);
    fleet.of(userId).refresh(machine);
    log.info({ user_id: userId, action: 'put', provider: machine.provider, state: machine.state }, 'machine changed');
    return sendOk(c, { ...view(machine), token: minted, warnings: missing.length > 0 ? missing : undefined });
  });

  serve(app, ROUTER_ROUTES.putBudget, async (c) => {
    const budget = parseOrThrow(budgetSchema, await readJson(c));
    budgets.check(budget);
    return sendOk(c, view(await change(c, 'budget', (machine, now) => withBudget(machine, budget, now))));
  });

  serve(app, ROUTER_ROUTES.deleteBudget, async (c) =>
    sendOk(c, view(await change(c, 'budget', (machine, now) => withBudget(machine, null, now)))),
  );

  serve(app, ROUTER_ROUTES.rotateToken, async (c) => {
    let token = '';
    const machine = await change(c, 'rotate-token', (current, now) =>
      rotateToken(current, now, () => {
        token = current.provider === 'command' && agents.signs(current.spec) ? signingSecret() : randomSecret();
        return token;
      }),
    );
    budgets.machineChanged(machine.userId);
    fleet.of(machine.userId).refresh(machine);
    const warning = tokenWarning(machine);
    return sendOk(c, { ...view(machine), token, warnings: warning === undefined ? undefined : [warning] });
  });

  serve(app, ROUTER_ROUTES.deleteMachine, (c) => changeAndStop(c, 'delete', deleteMachine));

  serve(app, ROUTER_ROUTES.suspendMachine, (c) => changeAndStop(c, 'suspend', suspendMachine));

  serve(app, ROUTER_ROUTES.restoreMachine, async (c) => {
    const machine = await change(c, 'restore', restoreMachine);
    budgets.machineChanged(machine.userId);
    return sendOk(c, view(machine));
  });
}

/** The providers whose token the operator must update after a rotation; a process restarts with the new one. */
function tokenWarning({ provider, spec }: Machine): string | undefined {
  if (descriptorOf(provider).handsToken || (provider === 'command' && spec.url === undefined)) return undefined;
  if (provider === 'command')
    return 'the agent must be given the new token; until then it accepts no wake and trusts no signature';
  return `the daemon must be given the new token (provider ${provider}); until then it refuses wakes`;
}

const CHANGES_DEFAULT = 50;

/** @param app checks the admin token below `/admin` */
function addChangeRoutes(app: HttpApp, registry: Registry): void {
  serve(app, ROUTER_ROUTES.listChanges, (c) => {
    const userId = userIdOf(c);
    const { limit = CHANGES_DEFAULT, cursor } = parseOrThrow(machineChangeQuerySchema, c.req.query());
    registry.existing(userId);
    const found = registry.changes.of(userId, { limit: limit + 1, before: cursor });
    const page = found.slice(0, limit);
    const next_cursor = found.length > limit ? String(page.at(-1)!.seq) : undefined;
    return sendOk(c, { changes: page.map(({ change }) => change), next_cursor });
  });
}

/** A turn may contain a long reply. */
const TURNS_DEFAULT = 20;

/** @param app checks the admin token below `/admin` */
function addTurnRoutes(app: HttpApp, store: AgentHost['store']): void {
  serve(app, ROUTER_ROUTES.listTurns, (c) => {
    const userId = userIdOf(c);
    const query = parseOrThrow(machineTurnQuerySchema, c.req.query());
    const limit = query.limit ?? TURNS_DEFAULT;
    const found = store.list({
      userId,
      limit: limit + 1,
      conversationId: query.conversation_id,
      fireId: query.fire_id,
      status: query.status,
      before: query.cursor,
    });
    const page = found.slice(0, limit);
    const next_cursor = found.length > limit ? String(page.at(-1)!.seq) : undefined;
    return sendOk(c, { turns: page.map(machineTurnViewOf), counts: store.counts(userId), next_cursor });
  });
}
