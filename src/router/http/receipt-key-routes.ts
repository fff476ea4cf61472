/** `GET /internal/receipt-keys/{user_id}`: how chronosd tells whose receipts are genuine, without knowing a machine's token. */
import { requireBearer } from '../../kit/http/bearer.ts';
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { receiptKey } from '../../kit/identity/receipt-key.ts';
import { noMachine } from '../machines/machine.ts';
import type { Registry } from '../machines/registry.ts';
import { userIdOf } from './machine-routes.ts';
import { ROUTER_ROUTES } from './routes.ts';

export function addReceiptKeyRoutes(
  app: HttpApp,
  { registry, wakeToken }: { registry: Registry; wakeToken: string | undefined },
): void {
  serve(
    app,
    ROUTER_ROUTES.receiptKeys,
    (c) => {
      const userId = userIdOf(c);
      const tokens = registry.receiptTokens(userId);
      if (tokens.length === 0) throw noMachine(userId);
      return sendOk(c, { keys: tokens.map(receiptKey) });
    },
    requireBearer(wakeToken),
  );
}
