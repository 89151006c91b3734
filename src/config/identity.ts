import { boolean, choice, duration, optional, path } from './kinds.ts'
import { hostPattern, resolverAddress, webUrl } from './network-kinds.ts'
import { type ValueOf, list, section, setting } from './items.ts'

/** How agents prove their identity. */
export const IDENTITY = section(
  'How agents prove their identity (Web Bot Auth; see config/guide/verified-agents.md).',
  {
    signatures: setting(
      choice('discover', 'listed', 'off'),
      'discover',
      'Which keys are fetched to verify request signatures. `discover`: the keys of every claimed signer. `listed`: only the keys of agents with a `signature_agent` in the signatures, and of `agents`. `off`: none; request signatures are ignored.',
    ),
    agents: list(
      webUrl,
      'Known agents, in addition to those in the signatures: `https://agent.example`. Their keys are fetched at startup, also with `listed`.',
    ),
    registries: list(
      webUrl,
      'Registries of signature agent cards: `https://registry.example/agents.txt`, a text with the URL of a card or a key directory on each line. They are fetched every hour, with their cards. Agents in them are known like those in `agents`, and rules test them with `card: {registry: …}`. At most eight.',
    ),
    hosts: list(
      hostPattern,
      'Hosts that a signature may be made for. Set it behind a proxy that terminates TLS; otherwise the names in the certificates are used. `*.example.com` matches exactly one label before it.',
    ),
    nonce: setting(
      choice('optional', 'required'),
      'optional',
      'Whether each signature must have a nonce, which makes it valid for one request only. A signature without a nonce can be used again, but only from the address that first used it.',
    ),
    key_header: setting(
      boolean,
      false,
      'Whether to verify signatures whose key is named in the header `Signature-Key` (draft-hardt-httpbis-signature-key), by its schemes `hwk`, `jwks`, `jwks_uri` and `jwt`. See config/guide/request-signatures.md.',
    ),
    reverse_dns: setting(
      boolean,
      true,
      'Whether to verify agents by reverse DNS, if their vendor publishes its host names: the address must resolve to such a name, and the name to the address. Requests do not wait for DNS; the result applies to the next request.',
    ),
    resolvers: list(
      resolverAddress,
      'The DNS servers to use. The first response counts. Empty: the DNS servers of the system.',
    ),
    ranges_refresh: setting(
      optional(duration('10m', '14d')),
      null,
      'How often to fetch the address lists that vendors publish for their agents (`ranges_url` in signatures), with some jitter. `null`: never; the lists in the signatures are used.',
    ),
    asn_file: setting(
      optional(path),
      null,
      'A MaxMind DB file of network numbers (GeoLite2-ASN, or the one of DB-IP or IPinfo), to verify agents by their network, and to show the network of requests, with its country if the file has it (IPinfo). A manager needs it for the latter. Reloaded when it changes. `null`: none.',
    ),
  },
)

/** How Gatehouse proves its own identity. */
export const SIGNING = section(
  'Signatures that Gatehouse makes with its own key. The public key is published at `/.well-known/http-message-signatures-directory` on the management port.',
  {
    webhooks: setting(
      boolean,
      false,
      'Whether to sign requests to webhooks and task callbacks with Web Bot Auth (RFC 9421), in addition to Standard Webhooks.',
    ),
    upstream: setting(
      boolean,
      false,
      'Whether to sign the headers sent to the upstream with this key (`X-Agent-Signature`), instead of `proxy.signature_key`.',
    ),
    key_file: setting(
      optional(path),
      null,
      'File with the private key, created by `gatehouse sign key`, or PEM. If it has several keys, the first one signs and all are published. Reloaded when it changes. All processes of one installation need the same file. `null`: a key is created in the file `signing.jwk` in `data.dir`.',
    ),
    agent: setting(
      optional(webUrl),
      null,
      'The public URL of the key directory, which identifies this signer. `null`: `manage.public_url`, or the address of the management port.',
    ),
  },
)

export interface IdentityConfig {
  readonly signatures: 'discover' | 'listed' | 'off'
  readonly agents: readonly string[]
  readonly registries: readonly string[]
  readonly hosts: readonly string[]
  readonly nonce: 'optional' | 'required'
  readonly signatureKey: boolean
  readonly reverseDns: boolean
  readonly resolvers: readonly string[]
  /** `null`: never. */
  readonly rangesRefreshMs: number | null
  /** `null`: not configured. */
  readonly asnFile: string | null
}

export interface SigningConfig {
  readonly webhooks: boolean
  readonly upstream: boolean
  /** `null`: in the data folder. */
  readonly keyFile: string | null
  readonly agent: string | null
}

export function identityConfig(identity: ValueOf<typeof IDENTITY>): IdentityConfig {
  return {
    signatures: identity.signatures,
    agents: identity.agents,
    registries: identity.registries,
    hosts: identity.hosts,
    nonce: identity.nonce,
    signatureKey: identity.key_header,
    reverseDns: identity.reverse_dns,
    resolvers: identity.resolvers,
    rangesRefreshMs: identity.ranges_refresh,
    asnFile: identity.asn_file,
  }
}

export function signingConfig(signing: ValueOf<typeof SIGNING>): SigningConfig {
  return {
    webhooks: signing.webhooks,
    upstream: signing.upstream,
    keyFile: signing.key_file,
    agent: signing.agent,
  }
}
