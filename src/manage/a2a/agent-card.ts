import { AgentCard, canonicalizeAgentCard, generateAgentCardSignature } from '@a2a-js/sdk'
import type { Principal, Scope } from '../http/access/principal.ts'
import { SIGNATURES, ROUTES } from '../auth/oauth/routes.ts'
import { wellKnownUrl } from '../http/access/resources.ts'
import { tagOf } from '../http/front/entity-tags.ts'
import type { ApiContext } from '../api/context.ts'
import type { Tools } from '../jobs/tools.ts'
import { RPC_PATH, REST_PATH, VERSION } from './protocol.ts'
import { SKILLS, type Skill, scopesOf, skillsFor } from './skills.ts'

/** A signed agent card, and its entity tag. */
interface SignedCard {
  readonly text: string
  /** The same in all processes, although their signatures differ. */
  readonly tag: string
}

/** Makes our agent cards (A2A 1.0 §8), signed with the key that signs access tokens. */
export class AgentCards {
  readonly #management: ApiContext
  readonly #tools: Tools
  readonly #hasPeople: boolean
  #kept: (SignedCard & { readonly kid: string }) | null = null

  constructor(management: ApiContext, tools: Tools, hasPeople: boolean) {
    this.#management = management
    this.#tools = tools
    this.#hasPeople = hasPeople
  }

  /** The card for any client. */
  async public(): Promise<SignedCard> {
    const { signer } = await this.#management.oauth.keys.current()
    if (this.#kept?.kid === signer.kid) return this.#kept
    const card = this.#card(SKILLS)
    const text = JSON.stringify(await this.#signed(card))
    const tag = tagOf(Buffer.from(`${signer.kid} ${canonicalizeAgentCard(card)}`))
    this.#kept = { kid: signer.kid, text, tag: `W/${tag}` }
    return this.#kept
  }

  /** The card for this principal: only the skills that it may use. */
  extended(principal: Principal): Promise<unknown> {
    const { scopes } = principal
    return this.#signed(this.#card(skillsFor(principal, this.#tools), scopes))
  }

  /** Signs the card and returns it as JSON. */
  async #signed(card: AgentCard): Promise<unknown> {
    const { oauth, publicUrl } = this.#management
    const { kid, privateJwk } = (await oauth.keys.current()).signer
    const header = { alg: 'ES256', typ: 'JOSE', kid, jku: publicUrl + ROUTES.jwks }
    return AgentCard.toJSON(await generateAgentCardSignature(privateJwk, header)(card))
  }

  /** `held`: the scopes of the principal that the card is for. */
  #card(skills: readonly Skill[], held?: ReadonlySet<Scope>): AgentCard {
    const { publicUrl, version } = this.#management
    const securitySchemes = schemesAt(publicUrl, this.#hasPeople)
    const requirementsOf = (of: readonly Skill[]) =>
      requirements(Object.keys(securitySchemes), scopesOf(of, this.#tools, held))
    return AgentCard.fromJSON({
      name: 'Gatehouse',
      description:
        'Identifies AI agents by their requests: names the agent behind a User-Agent, a JA4 fingerprint or a whole request, and explains why.',
      version,
      documentationUrl: `${publicUrl}/docs`,
      supportedInterfaces: [
        { url: publicUrl + RPC_PATH, protocolBinding: 'JSONRPC', protocolVersion: VERSION },
        { url: publicUrl + REST_PATH, protocolBinding: 'HTTP+JSON', protocolVersion: VERSION },
      ],
      capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
      securitySchemes,
      // Every message calls a tool. The card lists the scopes for all tools, and
      // each skill the scopes for itself.
      securityRequirements: requirementsOf(skills),
      defaultInputModes: ['application/json', 'text/plain'],
      defaultOutputModes: ['application/json', 'text/plain'],
      skills: skills.map((skill) => {
        const { tools: _tools, ...shown } = skill
        return { ...shown, securityRequirements: requirementsOf([skill]) }
      }),
    })
  }
}

function schemesAt(publicUrl: string, hasPeople: boolean) {
  const metadata = wellKnownUrl(publicUrl, 'oauth-authorization-server')
  const tokenUrl = publicUrl + ROUTES.token
  const flow = { tokenUrl, scopes: SCOPES }
  const oauth2 = (flows: object, description: string) => ({
    oauth2SecurityScheme: { description, flows, oauth2MetadataUrl: metadata },
  })
  const http = (scheme: string, bearerFormat: string, description: string) => ({
    httpAuthSecurityScheme: { scheme, bearerFormat, description },
  })
  const code = {
    ...flow,
    authorizationUrl: publicUrl + ROUTES.authorization,
    refreshUrl: tokenUrl,
    pkceRequired: true,
  }
  return {
    oauth2: oauth2({ clientCredentials: flow }, 'A client that acts on its own behalf.'),
    ...(hasPeople && {
      oauth2_code: oauth2({ authorizationCode: code }, 'A client that acts for a signed-in user.'),
    }),
    api_key: http('Bearer', 'API key', 'An API key created by an administrator.'),
    dpop: http('DPoP', 'JWT', `An OAuth token bound to a key (RFC 9449): ${SIGNATURES.join(', ')}.`),
  }
}

/** Any one of the schemes, with all of these scopes. An API key needs the scopes as an OAuth token does. */
function requirements(schemes: readonly string[], scopes: readonly Scope[]) {
  return schemes.map((name) => ({ schemes: { [name]: { list: [...scopes] } } }))
}

const SCOPES = {
  mcp: 'Call tools. Each tool also needs one of the other scopes.',
  read: 'Read agents, fingerprints and statistics.',
  detect: 'Run detections, alone or in tasks.',
  write: 'Submit fingerprints.',
}
