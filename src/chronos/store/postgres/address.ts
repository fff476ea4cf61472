/** The address of the database: a PostgreSQL URI with one or several hosts, of which one accepts writes at a time. */
import pg from 'pg';
import { ReveilleError } from '../../../wire/errors.ts';

/** One server that may be the primary. */
export type Server = {
  /** `host:port/database`, for messages: never the user or the password. */
  name: string;
  connection: pg.ClientConfig;
};

const URI = /^(postgres(?:ql)?:\/\/)((?:[^/?#]*@)?)([^/?#@]*)(\/[^?#]*)?(?:\?([^#]*))?$/;

/** Values of libpq that the store always satisfies: it connects to a server that accepts writes. */
const SESSION_ATTRIBUTES = ['read-write', 'primary', 'any'];

function badUri(what: string): ReveilleError {
  const message = `CHRONOS_POSTGRES_URI ${what}; write postgres://user:password@host:5432/database, several hosts with commas between them`;
  return new ReveilleError('invalid_request', message);
}

function checkParameters(parameters: URLSearchParams): void {
  const wanted = parameters.get('target_session_attrs');
  if (wanted !== null && !SESSION_ATTRIBUTES.includes(wanted))
    throw badUri(`has target_session_attrs=${wanted}, but alarms have to be written: omit it or use read-write`);
}

function connectionTo(uri: string): pg.ClientConfig {
  try {
    // The library parses a URI only when it connects. A client that never connects reports errors now.
    const { host, port, database } = new pg.Client({ connectionString: uri });
    if (!(port > 0 && port < 65_536)) throw badUri(`names the port ${port}`);
    return { connectionString: uri, host, port, ...(database === undefined ? {} : { database }) };
  } catch (cause) {
    if (cause instanceof ReveilleError) throw cause;
    const { code, path } = cause as NodeJS.ErrnoException;
    if (code !== undefined && path !== undefined)
      throw badUri(`names the file ${path}, which cannot be read (${code})`);
    // The library's message may contain the URI with its password.
    throw badUri('is not a valid address (special characters in a password are written %XX)');
  }
}

/**
 * Parses a URI. The servers keep its order, in which they are tried.
 *
 * @throws ReveilleError `invalid_request` without the user's name or password
 */
export function parseAddress(uri: string): Server[] {
  const match = URI.exec(uri);
  if (!match) throw badUri('is not a PostgreSQL address');
  const [, scheme, credentials, hosts, path = '', query = ''] = match;
  const parameters = new URLSearchParams(query);
  checkParameters(parameters);
  for (const name of ['target_session_attrs', 'load_balance_hosts']) parameters.delete(name);
  const rest = parameters.size > 0 ? `${path}?${parameters}` : path;
  return hosts!.split(',').map((host, _, all) => {
    if (host === '' && all.length > 1) throw badUri('names an empty host');
    const connection = connectionTo(`${scheme}${credentials}${host}${rest}`);
    return { name: `${connection.host}:${connection.port}/${connection.database}`, connection };
  });
}

/** The address for display: a placeholder replaces the password. */
export function withoutPassword(uri: string): string {
  return uri
    .replace(/^([^:]+:\/\/[^/?#:@]*):[^/?#]*@/, '$1:<password>@')
    .replace(/([?&](?:ssl)?password=)[^&#]*/gi, '$1<password>');
}
