/**
 * Checks every request first: the host name must be the console's (DNS rebinding), and a write must come from one of its
 * own pages. It also defines the headers of every answer.
 */
import { hostCheck } from '../kit/http/origin.ts';
import { ReveilleError } from '../wire/errors.ts';
import { showValue } from '../wire/validate.ts';

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "form-action 'self'",
  "base-uri 'self'",
  "frame-ancestors 'none'",
].join('; ');

export const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
  'cache-control': 'no-store',
};

export type GuardFigures = { hostsRefused: number; originsRefused: number };

/** Why a request is not one of the console's own pages; `undefined` if it is. */
function foreignSender({ headers, method, url }: Request): string | undefined {
  const own = new URL(url).origin;
  const origin = headers.get('origin');
  if (origin !== null && origin !== own)
    return `requests from pages of other sites are refused (Origin is ${showValue(origin)}, and this console is ${own})`;
  const site = headers.get('sec-fetch-site');
  const ofOtherSite = `requests from pages of other sites are refused (Sec-Fetch-Site is ${showValue(site)})`;
  if (method === 'GET' || method === 'HEAD') {
    // Other sites may link to the console, but not embed or fetch it.
    const isNavigation = headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document';
    return site !== null && site !== 'same-origin' && site !== 'none' && !isNavigation ? ofOtherSite : undefined;
  }
  // Every browser sends the origin of a write, so a write without it is not from a page.
  if (origin === null) return `a ${method} to the console needs the header Origin, which every browser sends`;
  return site !== null && site !== 'same-origin' ? ofOtherSite : undefined;
}

/**
 * @param hosts host names that are accepted in addition to those of the loopback address
 * @returns a check that throws ReveilleError `forbidden`
 */
export function createRequestGuard(hosts: readonly string[]) {
  const checkHost = hostCheck('127.0.0.1', hosts);
  const figures: GuardFigures = { hostsRefused: 0, originsRefused: 0 };
  return {
    figures,
    check(request: Request): void {
      try {
        checkHost(request.headers.get('host') ?? new URL(request.url).host);
      } catch (thrown) {
        figures.hostsRefused++;
        throw thrown;
      }
      if (!['GET', 'HEAD', 'POST'].includes(request.method))
        throw new ReveilleError('not_found', `${request.method} is not supported: use GET or POST`, { status: 405 });
      const why = foreignSender(request);
      if (why === undefined) return;
      figures.originsRefused++;
      throw new ReveilleError('forbidden', why);
    },
  };
}
