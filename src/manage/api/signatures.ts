import * as z from 'zod'
import { ALL_APPS } from '../../apps/app-scope.ts'
import { JA4_TYPES, type Ja4Type, wrongInFingerprint } from '../../classify/known/fingerprint-form.ts'
import type { LookupFingerprint, LikeSignature } from '../../store/catalogue/catalogue-lookup.ts'
import type { SignatureSort } from '../../store/catalogue/catalogue-lists.ts'
import type { KnownSignature } from '../../store/catalogue/known-signature.ts'
import type { ApiContext } from './context.ts'
import { type FieldError, invalid } from '../http/refusal.ts'
import { noPart } from '../../store/engine/page.ts'
import { type ApiOffered, type ApiVersioned, listing, operation } from './operation.ts'
import { booleanInQuery, textInQuery } from '../http/schemas.ts'
import {
  fingerprintType,
  knownToTeam,
  likeSignature,
  likeSignatureWithEvidence,
  shownSignature,
  shownWithEvidence,
  signature,
  signatureWithEvidence,
} from '../judging/signature-schemas.ts'

const SORTS = ['fingerprint', 'first_seen', 'confidence', 'observations'] as const

const listSignatures = listing({
  id: 'listSignatures',
  path: '/signatures',
  tag: 'Signatures',
  summary: 'Browse the signature database',
  description:
    'Signatures of agents, tools and browsers. `kind` tells them apart. With `unknown_only`, fingerprints on live traffic that no agent is named for. Callers that are limited to some apps get neither these nor counts of live traffic.',
  scopes: ['read'],
  reach: 'filtered',
  name: 'signatures',
  filters: {
    type: fingerprintType.optional().meta({ description: 'Only fingerprints of this type.' }),
    unknown_only: booleanInQuery(false, 'Only fingerprints seen on live traffic that no agent is named for.'),
    agent_id: textInQuery('Only signatures of this agent: its id or its exact name.').optional(),
    q: textInQuery(
      'The beginning of a fingerprint or of its second or third part, or a text in the name or description of its agent.',
    ).optional(),
    min_confidence: z
      .string()
      .regex(/^(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)$/, 'must be a number from 0 to 1')
      .transform(Number)
      .default(0)
      .meta({
        description: 'Minimum confidence.',
        override: ({ jsonSchema }) => {
          delete jsonSchema.pattern
          Object.assign(jsonSchema, { type: 'number', minimum: 0, maximum: 1, default: 0 })
        },
      }),
    sort: z
      .enum(SORTS.flatMap((each) => [each, `-${each}`] as const))
      .default('-first_seen')
      .meta({ description: 'A leading `-` reverses the order.' }),
  },
  part: async (filters, part, { store }, { principal }) => {
    const { agent_id: agentId } = filters
    const isObservedToo = principal.apps === ALL_APPS
    if (filters.unknown_only && !isObservedToo) return noPart<KnownSignature, typeof part>(part)
    const owner = agentId === undefined ? null : await store.catalogue.softwareNamed(agentId)
    if (agentId !== undefined && owner === null) return noPart<KnownSignature, typeof part>(part)
    const filter = {
      type: filters.type ?? null,
      unknownOnly: filters.unknown_only,
      isObservedToo,
      softwareId: owner?.id ?? null,
      text: filters.q ?? null,
      confidenceMin: filters.min_confidence,
      sort: sortIn(filters.sort),
    }
    return store.catalogueLists.signatures(filter, part)
  },
  items: {
    schema: signature,
    show: (known: readonly KnownSignature[], _, { apps }) => knownToTeam(known, apps).map(shownSignature),
  },
  betaItems: {
    schema: signatureWithEvidence,
    show: (known: readonly KnownSignature[], management, { apps }) =>
      shownWithEvidence(knownToTeam(known, apps), management, apps),
  },
})

const fingerprints = textInQuery('One or several, separated by commas.', 4096).optional()

const lookingUp = {
  id: 'lookupFingerprint',
  method: 'GET' as const,
  path: '/fingerprint/lookup' as const,
  tag: 'Signatures' as const,
  summary: 'Look up fingerprints',
  description:
    'All signatures that match one of the given fingerprints. Give at least one. A part of a signature that is `*` matches anything. A `*` in a given fingerprint matches only `*`. `match=partial` also finds signatures that share the stable parts, with a `score`, most similar first, up to 200.',
  scopes: ['read'] as const,
  reach: 'filtered' as const,
  query: z.strictObject({
    ja4: fingerprints,
    ja4s: fingerprints,
    ja4h: fingerprints,
    ja4x: fingerprints,
    match: z
      .enum(['exact', 'partial'])
      .default('exact')
      .meta({ description: '`partial` also finds similar fingerprints.' }),
  }),
  examples: { query: { ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1' } },
}

const lookupFingerprint: ApiVersioned = {
  v1: operation({
    ...lookingUp,
    answer: z.array(likeSignature),
    run: async ({ query, principal }, management) => {
      const found = knownToTeam(await lookedUp(query, management), principal.apps)
      return { body: found.map((each) => ({ ...shownSignature(each), ...scoreOf(each) })) }
    },
  }),
  v2: operation({
    ...lookingUp,
    answer: z.array(likeSignatureWithEvidence),
    run: async ({ query, principal }, management) => {
      const found = knownToTeam(await lookedUp(query, management), principal.apps)
      const shown = await shownWithEvidence(found, management, principal.apps)
      return { body: shown.map((each, index) => ({ ...each, ...scoreOf(found[index]!) })) }
    },
  }),
}

export const SIGNATURE_OPERATIONS: readonly ApiOffered[] = [listSignatures, lookupFingerprint]

async function lookedUp(
  query: z.output<typeof lookingUp.query>,
  { store }: ApiContext,
): Promise<readonly (KnownSignature | LikeSignature)[]> {
  const asked = askedFor(query)
  const { catalogueLookup } = store
  return query.match === 'exact' ? catalogueLookup.exact(asked) : catalogueLookup.partial(asked)
}

function scoreOf(signature: KnownSignature | LikeSignature) {
  return 'score' in signature ? { score: signature.score } : {}
}

function sortIn(text: string): SignatureSort {
  const isDescending = text.startsWith('-')
  const by = SORTS.find((each) => each === (isDescending ? text.slice(1) : text))!
  return { by, isDescending }
}

/** Throws a Refusal that says of each invalid fingerprint which part of it is wrong. */
function askedFor(
  query: Readonly<Partial<Record<Ja4Type, string | undefined>>>,
): readonly LookupFingerprint[] {
  const asked: LookupFingerprint[] = JA4_TYPES.flatMap((type) => {
    const values = query[type] === undefined ? [] : query[type].split(',').map((each) => each.trim())
    return [...new Set(values)].map((value) => ({ type, value }))
  })
  if (asked.length === 0)
    throw invalid([{ pointer: '/ja4', detail: `is missing: give at least one of ${JA4_TYPES.join(', ')}` }])
  const errors = asked.flatMap(({ type, value }): FieldError[] => {
    const wrong = wrongInFingerprint(type, value, true)
    return wrong === null ? [] : [{ pointer: `/${type}`, detail: wrong }]
  })
  const [first, ...others] = errors
  if (first !== undefined) throw invalid([first, ...others])
  if (asked.length > ASKED_MAX)
    throw invalid([
      {
        pointer: `/${asked[0]!.type}`,
        detail: `must have at most ${ASKED_MAX} fingerprints, all types together`,
      },
    ])
  return asked
}

/** As many as fit into the request line. A task takes more. */
const ASKED_MAX = 50
