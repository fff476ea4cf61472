/**
 * The environment of a process that the router starts. It is an allow-list, so that it contains no secret of the
 * router.
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
 * A value that is exactly `${NAME}` refers to that variable of the router, so that the registry need not contain the
 * secret.
 */
export function resolvedVariable(name: string, value: string, inherited: Variables): string {
  const variable = referenceOf(value);
  const withheld = [name, variable].find((one) => one !== undefined && isWithheld(one));
  if (withheld !== undefined) {
    const why = 'which is for the daemons of Reveille alone: no machine gets it; remove it from the specification';
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
  return Object.fromEntries(
    Object.entries(own).map(([name, value]) => [name, resolvedVariable(name, value, inherited)]),
  );
}

/**
 * The variables that a program of a machine gets, without the ones that the router sets for a start.
 *
 * @param inherited the router's own environment
 * @param own variables of the machine's specification
 * @throws MachineUnavailable with a referenced variable that is not set, or is withheld
 */
export const machineVariables = (inherited: Variables, own: Readonly<Record<string, string>>) => ({
  ...inheritedVariables(inherited),
  ...resolvedAll(own, inherited),
});

/** The values of variables with secret-like names, whether literal or references. */
export function secretsOf(inherited: Variables, own: Readonly<Record<string, string>>): string[] {
  return Object.entries(own).flatMap(([name, value]) => {
    const variable = referenceOf(value);
    if (!namesSecret(name) && (variable === undefined || !namesSecret(variable))) return [];
    return [variable === undefined ? value : (inherited[variable] ?? '')];
  });
}

/**
 * Builds the environment. The router's own variables override the machine's specification: the router connects to that
 * port with that token.
 *
 * @param inherited the router's own environment
 * @param own variables of the machine's specification; `${NAME}` takes the router's own
 * @throws MachineUnavailable with a referenced variable that is not set
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
    /** The descriptor on which a daemon may report that it listens on another port. */
    portChannel: number | undefined;
  },
): Record<string, string> {
  return {
    ...inheritedVariables(inherited),
    HOST: '127.0.0.1',
    // The address for turn reports is only a default: a daemon may reach chronosd another way.
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
 * The environment of a program that runs for one turn. It gets no token, because it has no listener.
 *
 * @param own as above
 * @param passedOn names of further variables of the router that it gets, if they are set
 * @throws MachineUnavailable with a referenced variable that is not set
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
