/** Provider `fly`: a Fly Machine. The router reaches its private address from within the Fly network. */
import { z } from 'zod';
import { type Descriptor, healthPath, healthPathFact, healthPathFlag, port, portFact, portFlag } from './descriptor.ts';
import { plain, shownPath } from './redaction.ts';

const SLEEPS = ['suspend', 'stop'] as const;

const flySpecSchema = z.strictObject({
  app: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be the name of a Fly app: a-z 0-9 -'),
  machine_id: z.string().regex(/^[a-zA-Z0-9]{1,64}$/, 'must be the id of a Fly machine: letters and digits'),
  /** The port of the daemon on the machine's private address; by default 8080. */
  port: port.optional(),
  /** How it is put to sleep; by default `suspend`. */
  sleep: z.enum(SLEEPS).optional(),
  /** The nonce of a lease that the operator holds on the machine. */
  lease_nonce: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 visible ASCII characters')
    .optional(),
  health_path: healthPath,
});
export type FlySpec = z.output<typeof flySpecSchema>;

export const FLY: Descriptor<'fly', typeof flySpecSchema> = {
  name: 'fly',
  about: 'a machine to start',
  schema: flySpecSchema,
  shown: { app: plain, machine_id: plain, port: plain, sleep: plain, health_path: shownPath },
  identity: ['app', 'machine_id'],
  flags: [
    { usage: '--app <name>', about: 'the app', member: 'app', kind: 'text', needed: 'the name of the Fly app' },
    {
      usage: '--machine-id <id>',
      about: 'the machine',
      member: 'machine_id',
      kind: 'text',
      needed: 'the id of the Fly machine',
    },
    portFlag,
    {
      usage: '--sleep <how>',
      about: 'suspend or stop (default: suspend)',
      member: 'sleep',
      kind: { choice: SLEEPS },
    },
    {
      usage: '--lease-nonce <nonce>',
      about: 'the nonce of a lease that you hold on the machine',
      member: 'lease_nonce',
      kind: 'text',
    },
    healthPathFlag,
  ],
  facts: (spec) => [['where', `${spec.app} ${spec.machine_id}`], portFact(spec), healthPathFact(spec)],
  async create({ awake, config, probe, clock, log }) {
    const { createFlyProvider } = await import('./fly-driver.ts');
    const { flyApiToken: apiToken, flyApiUrl: apiUrl } = config;
    return createFlyProvider({ awake: awake('fly'), probe, clock, log, apiToken, apiUrl });
  },
};
