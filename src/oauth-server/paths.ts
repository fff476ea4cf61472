/** Paths of the authorization server, in a file of their own so that the listener does not load the server. */

/** The path of the issuer. */
export const OAUTH_PATH = '/oauth';

/** Maximum size of a request body. */
export const OAUTH_BODY_BYTES = 32 * 1024;

/** Metadata addresses, to which the path of the issuer is appended (RFC 8414 §3.1). */
export const WELL_KNOWN = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'] as const;

/** Whether a request target (unparsed path and query) is answered by the server. */
export function isOfOauthServer(target: string): boolean {
  const [path = ''] = target.split('?', 1);
  return (
    path === OAUTH_PATH || path.startsWith(`${OAUTH_PATH}/`) || WELL_KNOWN.some((known) => path === known + OAUTH_PATH)
  );
}
