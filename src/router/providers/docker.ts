/** Provider `docker`: an existing container, on an engine that this machine reaches. */
import { z } from 'zod';
import {
  argument,
  type Descriptor,
  healthPath,
  healthPathFact,
  healthPathFlag,
  port,
  portFact,
  portFlag,
} from './descriptor.ts';
import { plain, shownPath } from './redaction.ts';

const SLEEPS = ['stop', 'pause'] as const;

const dockerSpecSchema = z.strictObject({
  /** Its name or id. */
  container: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$/, 'must be the name or id of a container: letters, digits, _ . -'),
  /** Where the daemon listens inside the container. */
  port,
  /** The engine's Unix socket; by default that of `DOCKER_HOST`. */
  socket: argument.startsWith('/').optional(),
  /** How it is put to sleep; by default `stop`. */
  sleep: z.enum(SLEEPS).optional(),
  health_path: healthPath,
});
export type DockerSpec = z.output<typeof dockerSpecSchema>;

export const DOCKER: Descriptor<'docker', typeof dockerSpecSchema> = {
  name: 'docker',
  about: 'a machine to start',
  schema: dockerSpecSchema,
  shown: { container: plain, port: plain, socket: plain, sleep: plain, health_path: shownPath },
  identity: ['socket', 'container'],
  flags: [
    {
      usage: '--container <name>',
      about: 'the container',
      member: 'container',
      kind: 'text',
      needed: 'the name or id of the container',
    },
    { usage: '--socket <path>', about: "the engine's socket (default: DOCKER_HOST)", member: 'socket', kind: 'text' },
    { ...portFlag, needed: 'the port on which the daemon listens in the container' },
    {
      usage: '--sleep <how>',
      about: 'stop or pause (default: stop)',
      member: 'sleep',
      kind: { choice: SLEEPS },
    },
    healthPathFlag,
  ],
  facts: (spec) => [['where', `container ${spec.container}`], portFact(spec), healthPathFact(spec)],
  async create({ awake, config, probe, clock, log }) {
    const { createDockerProvider } = await import('./docker-driver.ts');
    return createDockerProvider({ awake: awake('docker'), probe, clock, log, dockerHost: config.dockerHost });
  },
};
