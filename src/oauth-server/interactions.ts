/**
 * Sign-in with a credential of the public listener, and consent. A form is accepted once, only from a page of this
 * server, and only from the browser in which the request began (its cookie).
 */

import { randomBytes } from 'node:crypto';
import { sameSecret, seal } from '../kit/identity/secrets.ts';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import { REMOTE_SCOPES, type RemoteScope } from '../wire/remote-caller.ts';
import type { NodeExchange } from './bridge.ts';
import { destinationOf, hostOfClient } from './client-metadata.ts';
import type { Connections } from './connections.ts';
import type { Client, Interaction, InteractionResult, Provider } from './library.ts';
import { consentMain, continueMain, type Html, type ShownClient, signInMain } from './pages.ts';

/** A user who signed in with a credential of the public listener. */
export type SignedIn = {
  readonly user: string;
  /** The id of a revocable credential. */
  readonly credential?: string | undefined;
};

/** Authenticates users. */
export type Persons = {
  /** The owner of a token; `undefined` for an invalid one. @throws ReveilleError `rate_limited` */
  authenticate(token: string, remoteAddress: string): SignedIn | undefined;
  /** Uses a one-time code; `undefined` for an invalid one. */
  redeem(code: string): Promise<SignedIn | undefined>;
  /** Whether a credential is still valid. */
  isValid(credential: string): boolean;
  /** The name that a user knows; the id of the user without it. */
  nameOf?: ((user: string) => string) | undefined;
};

export type InteractionOptions = {
  connections: Connections;
  persons: Persons;
  /** The path of the server, `/oauth`. */
  base: string;
  /** Signs the forms. */
  secret: string;
  /** The scopes of a resource; `undefined` for an unknown one. */
  scopesOf: (resource: string) => readonly RemoteScope[] | undefined;
  log: Logger;
  /** Whether a client address may try another sign-in. */
  mayTry: (remoteAddress: string) => boolean;
};

export type Shown = {
  readonly title: string;
  readonly main: Html;
  readonly status?: number;
  readonly leadsTo?: string;
};

const METHOD = 'credential:';
/** The authentication methods (`amr`) of a session. They name the credential. */
export const methodsOf = ({ credential }: SignedIn): readonly string[] => [`${METHOD}${credential ?? ''}`];
/** The credential of a session; empty for a one-time code. */
export const credentialOf = (methods: readonly string[] = []): string | undefined =>
  methods.find((method) => method.startsWith(METHOD))?.slice(METHOD.length);

/** Whether the sign-in of a session or token is still valid. */
export function isStillValid(methods: readonly string[] | undefined, persons: Pick<Persons, 'isValid'>): boolean {
  const credential = credentialOf(methods);
  return credential !== undefined && (credential === '' || persons.isValid(credential));
}

/** The one-time code in a given text: an address of the console, or the code itself. */
const CODE = /^(?:https?:\/\/[^/\s]+\/o\/)?([\w-]{32,512})$/;
const TOKEN = /^rvp_/;

export const shownClient = ({ clientId, clientName, clientIdMetadataDocument }: Client): ShownClient => ({
  ...{ id: clientId, name: clientName },
  host: clientIdMetadataDocument ? hostOfClient(clientId) : undefined,
});

const scopesIn = (text: unknown): readonly string[] => (typeof text === 'string' ? text.split(' ') : []);
const resourcesIn = (given: unknown): readonly string[] =>
  [given ?? []].flat().filter((one): one is string => typeof one === 'string');

export class Interactions {
  readonly #options: InteractionOptions;

  constructor(options: InteractionOptions) {
    this.#options = options;
  }

  /** The page that asks the user. */
  async show(provider: Provider, exchange: NodeExchange, uid: string): Promise<Shown> {
    const { interaction, client } = await this.#read(provider, exchange, uid);
    return this.#page(interaction, client);
  }

  /** Processes an answer. @param form its fields; the caller has checked the origin of the request */
  async answer(
    provider: Provider,
    exchange: NodeExchange,
    uid: string,
    { form, remoteAddress }: { form: URLSearchParams; remoteAddress: string },
  ): Promise<Shown> {
    const { interaction, client } = await this.#read(provider, exchange, uid);
    if (!sameSecret(form.get('csrf') ?? '', this.#csrfOf(interaction)))
      throw new ReveilleError('forbidden', 'this form does not belong to this request: start again in the client');
    const end = (result: InteractionResult) => this.#finish(provider, exchange, result);
    switch (form.get('do')) {
      case 'deny':
        return end({ error: 'access_denied', error_description: 'the user denied the request' });
      case 'sign-in': {
        const signedIn = await this.#signIn(interaction, form.get('credential')?.trim() ?? '', remoteAddress);
        if ('complaint' in signedIn) return this.#page(interaction, client, signedIn);
        return end({ login: { accountId: signedIn.user, amr: methodsOf(signedIn), remember: false } });
      }
      case 'allow':
        return end({ consent: { grantId: await this.#grant(provider, interaction, client, form) } });
      default:
        throw new ReveilleError('invalid_request', 'the field "do" must be sign-in, allow or deny');
    }
  }

  async #read(
    provider: Provider,
    { req, res }: NodeExchange,
    uid: string,
  ): Promise<{ interaction: Interaction; client: Client }> {
    const interaction = await provider.interactionDetails(req, res);
    const client = await provider.Client.find(String(interaction.params.client_id));
    if (interaction.uid === uid && client) return { interaction, client };
    throw new ReveilleError('not_found', 'this request has ended: start again in the client');
  }

  #csrfOf({ uid, prompt }: Interaction): string {
    return seal(this.#options.secret, `oauth form ${prompt.name} ${uid}`);
  }

  #page(
    interaction: Interaction,
    client: Client,
    { complaint, status = 200 }: { complaint?: string; status?: number } = {},
  ): Shown {
    const { uid, prompt, params, session, deviceCode } = interaction;
    const common = {
      ...{ action: `${this.#options.base}/interaction/${uid}`, csrf: this.#csrfOf(interaction) },
      client: shownClient(client),
    };
    if (prompt.name !== 'consent' || session === undefined)
      return { status, title: 'Sign in', main: signInMain({ ...common, complaint }) };
    const destination = deviceCode === undefined ? destinationOf(params.redirect_uri) : undefined;
    const scopes = this.#requested(interaction);
    const user = this.#options.persons.nameOf?.(session.accountId) ?? session.accountId;
    const main = consentMain({ ...common, user, scopes, destination });
    return { status, title: 'Allow access?', main };
  }

  /** The requested scopes that one of the requested resources has. */
  #requested({ params }: Interaction): readonly RemoteScope[] {
    const offered = resourcesIn(params.resource).flatMap((resource) => this.#options.scopesOf(resource) ?? []);
    const asked = scopesIn(params.scope);
    return REMOTE_SCOPES.filter((scope) => asked.includes(scope) && offered.includes(scope));
  }

  async #signIn(
    { prompt }: Interaction,
    given: string,
    remoteAddress: string,
  ): Promise<SignedIn | { complaint: string; status: number }> {
    const { persons, mayTry } = this.#options;
    if (prompt.name !== 'login')
      throw new ReveilleError('invalid_request', 'you are already signed in; start again in the client');
    try {
      if (!mayTry(remoteAddress)) throw new ReveilleError('rate_limited', 'too many attempts; wait a minute');
      const code = CODE.exec(given)?.[1];
      const isToken = TOKEN.test(given);
      const signedIn = isToken ? persons.authenticate(given, remoteAddress) : code && (await persons.redeem(code));
      if (signedIn) return signedIn;
    } catch (thrown) {
      const { code, message, status } = toReveilleError(thrown);
      if (code !== 'rate_limited') throw thrown;
      return { complaint: message, status };
    }
    const complaint = 'This code or token is not valid. A code works once, within ten minutes.';
    return { complaint, status: 401 };
  }

  async #grant(provider: Provider, interaction: Interaction, client: Client, form: URLSearchParams): Promise<string> {
    const { session, params, prompt, deviceCode } = interaction;
    const { persons, connections, log } = this.#options;
    if (prompt.name !== 'consent' || session === undefined || !isStillValid(session.amr, persons))
      throw new ReveilleError('unauthorized', 'sign in first: start again in the client');
    const asked = this.#requested(interaction);
    const allowed = asked.filter((scope) => form.getAll('scope').includes(scope));
    if (allowed.length === 0)
      throw new ReveilleError('invalid_request', 'select at least one kind of access, or deny the request');
    const { accountId: user } = session;
    // Not a secret: lists and tokens contain it.
    const jti = randomBytes(12).toString('hex');
    const grant = new provider.Grant({ jti, accountId: user, clientId: client.clientId });
    const resources = resourcesIn(params.resource);
    for (const resource of resources) {
      grant.addResourceScope(resource, allowed.join(' '));
      const denied = asked.filter((scope) => !allowed.includes(scope));
      if (denied.length > 0) grant.rejectResourceScope(resource, denied.join(' '));
    }
    // The library's own scopes have no effect here.
    for (const scope of ['openid', 'offline_access'])
      if (scopesIn(params.scope).includes(scope)) grant.addOIDCScope(scope);
    const id = await grant.save();
    await connections.add({
      ...{ id, user, clientId: client.clientId, clientName: client.clientName, scopes: allowed, resources },
      redirectHost: deviceCode === undefined ? destinationOf(params.redirect_uri)?.host : undefined,
      credential: credentialOf(session.amr) || undefined,
    });
    log.info({ user_id: user, client_id: client.clientId, scopes: allowed, connection: id }, 'client connected');
    return id;
  }

  async #finish(provider: Provider, { req, res }: NodeExchange, result: InteractionResult): Promise<Shown> {
    const leadsTo = await provider.interactionResult(req, res, result);
    // A page instead of a redirect: browsers apply `form-action` to redirects, which would block another origin.
    return { title: 'Continue', main: continueMain(leadsTo), leadsTo };
  }
}
