/**
 * The environment of a process that the router starts: an allow-list, so that no secret of the router's own leaks into
 * it.
 */
import {
  CONVERSATION_VARIABLE,
  inheritedVariables,
  isWithheld,
  SPAWN_ID_VARIABLE,
} from '../../kit/process/inherited-variables.ts';
import { MachineUnavailable } from './provider.ts';
import { namesSecret, referenceOf } from './redaction.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * A value that is `${NAME}` as a whole stands for that variable of the router, so that a secret need not stand in the
 * registry.
 */
function resolved(name: string, value: string, inherited: Variables): string {
  const variable = referenceOf(value);
  const withheld = [name, variable].find((one) => one !== undefined && isWithheld(one));
  if (withheld !== undefined) {
    const why = 'which is for the daemons of Reveille alone: no machine gets it; take it out of the specification';
    throw new MachineUnavailable(`the machine's env.${name} names ${withheld}, ${why}`);
  }
  if (variable === undefined) return value;
  const found = inherited[variable];
  if (found !== undefined) return found;
  throw new MachineUnavailable(
    `the machine's env.${name} refers to ${variable}, which is not set where the router runs`,
  );
}

function resolvedAll(own: Readonly<Record<string, string>>, inherited: Variables): Record<string, string> {
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [name, resolved(name, value, inherited)]));
}

/** The values that a process gets under names that look like secrets, whether written down or referred to. */
export function secretsOf(inherited: Variables, own: Readonly<Record<string, string>>): string[] {
  return Object.entries(own).flatMap(([name, value]) => {
    const variable = referenceOf(value);
    if (!namesSecret(name) && (variable === undefined || !namesSecret(variable))) return [];
    return [variable === undefined ? value : (inherited[variable] ?? '')];
  });
}

/**
 * Puts the environment together. What the router decides wins over the machine's specification: it looks for the daemon
 * on that port and greets it with that token.
 *
 * @param inherited the router's own environment
 * @param own variables of the machine's specification; `${NAME}` takes the router's own
 * @throws MachineUnavailable naming a variable that is referred to and not set
 */
export function childEnvironment(
  inherited: Variables,
  own: Readonly<Record<string, string>>,
  {
    port,
    token,
    spawnId,
    chronosUrl,
    portChannel,
  }: {
    port: number;
    token: string;
    spawnId: string;
    chronosUrl: string | undefined;
    /** The descriptor on which a daemon may say that it listens on another port. */
    portChannel: number | undefined;
  },
): Record<string, string> {
  return {
    ...inheritedVariables(inherited),
    HOST: '127.0.0.1',
    // Where receipts go is only proposed: a daemon may have reasons to reach chronosd another way.
    ...(chronosUrl === undefined ? {} : { NEO_CHRONOS_URL: chronosUrl, REVEILLE_CHRONOS_URL: chronosUrl }),
    ...resolvedAll(own, inherited),
    PORT: String(port),
    ...(portChannel === undefined ? {} : { REVEILLE_PORT_FD: String(portChannel) }),
    NEO_DAEMON_TOKEN: token,
    REVEILLE_MACHINE_TOKEN: token,
    [SPAWN_ID_VARIABLE]: spawnId,
  };
}

/**
 * The environment of a program that is run for one turn: it gets no token, and serves nobody.
 *
 * @param own as above
 * @param passedOn names of more variables of the router that it gets, where they are set
 * @throws MachineUnavailable naming a variable that is referred to and not set
 */
export function programEnvironment(
  inherited: Variables,
  own: Readonly<Record<string, string>>,
  {
    passedOn,
    spawnId,
    conversationId,
  }: { passedOn: readonly string[]; spawnId: string; conversationId?: string | undefined },
): Record<string, string> {
  const handed = passedOn.filter((name) => !isWithheld(name));
  const more = handed.flatMap((name) => (inherited[name] === undefined ? [] : [[name, inherited[name]] as const]));
  return {
    ...inheritedVariables(inherited),
    ...Object.fromEntries(more),
    ...resolvedAll(own, inherited),
    ...(conversationId !== undefined && { [CONVERSATION_VARIABLE]: conversationId }),
    [SPAWN_ID_VARIABLE]: spawnId,
  };
}
