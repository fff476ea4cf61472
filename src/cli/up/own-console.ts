/** The console of `reveille up` for this installation's user; created with the first request. */

import type { ConsoleApp } from '../../console/console.ts';
import { hostNames } from '../../kit/http/listener-settings.ts';
import { randomSecret } from '../../kit/identity/secrets.ts';
import type { NotificationChannels } from '../../notify/client.ts';
import type { PagesOf } from '../../router/public/listener.ts';
import type { Users } from '../../router/public/users.ts';
import type { Settings } from '../../wire/settings.ts';
import { type OauthAccess, oauthAccess } from '../access/oauth-server.ts';
import type { CliContext } from '../context.ts';
import { readSecrets } from '../home/home.ts';

export type OwnConsole = {
  /** Signs one-time codes; `reveille open` uses it. New at every start. */
  readonly secret: string;
  /** The pages at the router of this process. */
  readonly pagesOf: PagesOf;
  /** The authorization server of this process; `undefined` when it is off. */
  readonly oauth: OauthAccess | undefined;
  close(): void;
};

/**
 * @param name the user's name in alarms
 * @throws ReveilleError as `oauthAccess`
 */
export function ownConsole(context: CliContext, name: string): OwnConsole {
  const secret = randomSecret();
  let app: Promise<ConsoleApp> | undefined;
  let users: Users | undefined;
  const open = (given: Users): Promise<ConsoleApp> => {
    app ??= make(given);
    return app;
  };
  // A code signs in once, here or at the console.
  const oauth = oauthAccess(context, async (code) => users && (await open(users)).redeem(code));
  let channels: NotificationChannels | undefined;
  const make = async ({ onMachine }: Users): Promise<ConsoleApp> => {
    const [{ createConsole }, { localBackend }, { NotificationChannels }, { parseNotifyConfig }] = await Promise.all([
      import('../../console/console.ts'),
      import('../access/console-backend.ts'),
      import('../../notify/client.ts'),
      import('../../notify/config.ts'),
    ]);
    // Secrets of the first start are not in its settings.
    const settings: Settings = { ...readSecrets(context.home), ...context.settings };
    const { clock } = context;
    const notifying = new NotificationChannels({ dir: parseNotifyConfig(settings).dataDir, clock });
    channels = notifying;
    const own = localBackend({ ...context, settings }, name, { onMachine, notify: notifying, oauth });
    return createConsole({
      clock,
      links: notifying.links,
      log: await context.log('console', 'error'),
      cookie: settings.ROUTER_PUBLIC_TLS_CERT === undefined ? 'path' : 'secure-path',
      hosts: hostNames(settings.ROUTER_PUBLIC_ALLOWED_HOSTS),
      codeSecret: secret,
      backendOf: () => own,
    });
  };
  return {
    secret,
    oauth,
    pagesOf(given) {
      users = given;
      return async (request, info) => (await open(given)).fetch(request, info);
    },
    close() {
      void app?.then((made) => made.close()).finally(() => channels?.close());
    },
  };
}
