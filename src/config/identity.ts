import { boolean, choice, duration, hostPattern, optional, path, resolverAddress, webUrl } from './kinds.ts'
import { list, section, setting } from './items.ts'

/** How agents prove their identity. */
export const IDENTITY = section(
  'How agents prove who they are (Web Bot Auth; see README, "Verified agents").',
  {
    signatures: setting(
      choice('discover', 'listed', 'off'),
      'discover',
      'Whose keys are fetched: those of whoever signs a request; of agents that signatures name (`signature_agent`) and of `agents`; of nobody, and no signature is looked at.',
    ),
    agents: list(
      webUrl,
      'Agents that are no strangers, beside those of signatures: `https://agent.example`. Their keys are fetched at the start, and with `listed`, too.',
    ),
    hosts: list(
      hostPattern,
      'Hosts that a signature may be made for, where those are not the names in the certificates: behind something that ends TLS. `*.example.com` is any label in front.',
    ),
    nonce: setting(
      choice('optional', 'required'),
      'optional',
      'Whether each signature has to have a nonce, and so be good for one request. One without can be used again by the address that it first came from.',
    ),
    reverse_dns: setting(
      boolean,
      true,
      'Whether DNS is asked for the name of an address that claims to be an agent whose vendor says what its names end with, and whether that name has the address. Nobody waits for it: it is known for the next request.',
    ),
    resolvers: list(
      resolverAddress,
      'Which DNS servers are asked, of which the first that answers is believed. None: those of the system.',
    ),
    ranges_refresh: setting(
      optional(duration('10m', '14d')),
      null,
      'How often the lists of addresses that vendors publish for their agents (`ranges_url` in signatures) are fetched anew, a little more or less. `null`: never, and those that come with signatures are used.',
    ),
    asn_file: setting(
      optional(path),
      null,
      'A MaxMind DB of networks (GeoLite2-ASN, or that of DB-IP or IPinfo), for agents whose networks are known. Loaded anew when it changes. `null`: none.',
    ),
  },
)

/** How Gatehouse proves its own identity. */
export const SIGNING = section(
  'What is signed with a key of our own, which others find at `/.well-known/http-message-signatures-directory` of the management port.',
  {
    webhooks: setting(
      boolean,
      false,
      'Whether what webhooks and callbacks of tasks are told is signed as an agent does (Web Bot Auth, RFC 9421), beside Standard Webhooks.',
    ),
    upstream: setting(
      boolean,
      false,
      'Whether what the app is told is signed with it (`X-Agent-Signature`), in place of `proxy.signature_key`.',
    ),
    key_file: setting(
      optional(path),
      null,
      'The private key, as `gatehouse sign key` makes it, or PEM; the first of several signs, and all are shown. Loaded anew when it changes; the same for all processes of one installation. `null`: one is made, in the file `signing.jwk` of `data.dir`.',
    ),
    agent: setting(
      optional(webUrl),
      null,
      'Who signs, as others know it: where the directory is. `null`: `manage.public_url`, or where the management port listens.',
    ),
  },
)
