/**
 * The agent card. The public card describes the interfaces and contains no data of a user. The extended card, after
 * authentication, names the agent's user and describes the input of each skill. Pure.
 */
import type { AgentCard, AgentSkill } from '@a2a-js/sdk';
import { ALARM_FIELDS_OF_AGENTS } from './alarm-skill.ts';
import type { A2aCaller } from './caller.ts';

export const CARD_PATH = '/.well-known/agent-card.json';
/** Path of both bindings: JSON-RPC at the path itself, HTTP+JSON below it. */
export const A2A_PATH = '/a2a';

/** The versions of the protocol; the old one only by JSON-RPC. */
export const VERSION = '1.0';
export const LEGACY_VERSION = '0.3';

const MODES = ['text/plain', 'application/json'];
const SCHEME = 'bearer';

const skill = (id: string, name: string, description: string, examples: string[]): AgentSkill => ({
  ...{ id, name, description, examples, tags: [id] },
  ...{ inputModes: [], outputModes: [], securityRequirements: [] },
});

const SKILLS = [
  skill('ask', 'Ask', "Answers a message, with the tools and the memory of its user's agent.", []),
  skill('set_alarm', 'Set an alarm', 'Stores an alarm that wakes the agent at a time or on a schedule.', []),
];

const EXAMPLE = JSON.stringify({
  alarm: { kind: 'once', fire_at: '2027-01-04T09:00:00Z', wake_message: 'Compare the two offers.' },
});

/** The skills with the description of their input. */
const EXTENDED_SKILLS = [
  skill(
    'ask',
    'Ask',
    'A message becomes a turn of the agent. Each context has its own conversation. While a step waits for the approval of the user, the task is TASK_STATE_AUTH_REQUIRED; the user approves elsewhere.',
    ['What is on the calendar for Monday?'],
  ),
  skill(
    'set_alarm',
    'Set an alarm',
    `A message with one data part: an object with the member "alarm". Its fields: ${ALARM_FIELDS_OF_AGENTS.join(', ')}.`,
    [EXAMPLE],
  ),
];

/** @param publicUrl the address of the listener, without a trailing slash */
export function publicCard(publicUrl: string, agentVersion: string): AgentCard {
  const url = `${publicUrl}${A2A_PATH}`;
  const at = (protocolBinding: string, protocolVersion: string) => ({
    url,
    protocolBinding,
    tenant: '',
    protocolVersion,
  });
  return {
    name: 'Reveille',
    description: "A user's agent. It answers messages of other agents, and sets alarms for them.",
    supportedInterfaces: [at('JSONRPC', VERSION), at('HTTP+JSON', VERSION), at('JSONRPC', LEGACY_VERSION)],
    provider: undefined,
    version: agentVersion,
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true, extensions: [] },
    securitySchemes: {
      [SCHEME]: {
        scheme: {
          $case: 'httpAuthSecurityScheme',
          value: { description: 'A token that the user has given to this agent.', scheme: 'Bearer', bearerFormat: '' },
        },
      },
    },
    securityRequirements: [{ schemes: { [SCHEME]: { list: [] } } }],
    ...{ defaultInputModes: MODES, defaultOutputModes: MODES, skills: SKILLS, signatures: [] },
  };
}

/** The card for a verified caller. */
export function extendedCard(card: AgentCard, { userId }: A2aCaller): AgentCard {
  return { ...card, name: `Agent of ${userId}`, skills: EXTENDED_SKILLS };
}
