import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { test } from 'tap'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { openApiDocument } from '../../src/manage/api/openapi.ts'
import { VERSIONS } from '../../src/manage/api/operations.ts'
import { versionIn } from '../../src/manage/judging/detection.ts'
import { Store } from '../../src/store/store.ts'
import { newSigner } from '../identity/signer.ts'
import { type Answered, TestManagement } from './management.ts'

const UA = { user_agent: 'GPTBot/1.2' }
const JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
const AGENT = 'https://agent.example/identity.json'
const { jwk } = newSigner('ecdsa-p256-sha256')

interface Ruled {
  readonly method: string
  readonly path: string
  readonly schema: string
  /** Of each member values that are valid by themselves: whether a body is, the rules between members decide. */
  readonly members: Readonly<Record<string, readonly unknown[]>>
  readonly always?: Readonly<Record<string, unknown>>
  /** Where in the body that stands which the members are of. */
  readonly within?: (members: object) => object
}

const RULED: Readonly<Record<string, Ruled>> = {
  'a detection says something': {
    ...{ method: 'POST', path: '/detect', schema: 'DetectionRequest' },
    members: {
      user_agent: ['', null, 'GPTBot/1.2'],
      headers: [{}, { Accept: '*/*' }, null],
      ja4: ['', JA4, null],
      ja4h: ['', 'ge11nn05enus_9ed1ff1f7b03_cd8dafe26982_0a0b0c0d0e0f'],
      ja4s: ['', 't130200_1301_234ea6891581'],
      ja4x: ['', '2166164053c1_2166164053c1_30d204a01551'],
      http2: ['', '1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p', null],
      http_version: ['', '1.1', 'HTTP/2', 'h3', null],
      ip: ['', '192.0.2.1'],
    },
  },
  'a key has an access or scopes': {
    ...{ method: 'POST', path: '/keys', schema: 'KeyRequest', always: { name: 'a' } },
    members: { access: ['read', 'write'], scopes: [['read'], ['read', 'mcp']], plan: ['free'] },
  },
  'an agent or a key is trusted': {
    ...{ method: 'POST', path: '/trust', schema: 'TrustRequest', always: { scopes: ['read'] } },
    members: {
      agent_id: [AGENT],
      document: [{ client_id: AGENT, jwks: { keys: [jwk] } }],
      jwk: [jwk],
      name: ['a'],
    },
  },
  'a task has items or an input': {
    ...{ method: 'POST', path: '/tasks/create', schema: 'TaskRequest', always: { type: 'detect' } },
    members: { items: [[UA]], input: [UA, null], callback_url: [null] },
  },
  'feedback is on a request or a decision': {
    ...{ method: 'POST', path: '/feedback', schema: 'FeedbackRequest' },
    members: { request_id: ['x'], decision_id: ['y'], agent: ['gptbot'] },
    always: { verdict: 'agent' },
  },
  'feedback names an agent only where it was one': {
    ...{ method: 'POST', path: '/feedback', schema: 'FeedbackRequest' },
    members: { request_id: ['x'], decision_id: ['y'], agent: ['gptbot'] },
    always: { verdict: 'human' },
  },
  'an erasure is of a client or of a user': {
    ...{ method: 'POST', path: '/erasures', schema: 'ErasureRequest' },
    members: { address: ['203.0.113.7'], user: ['anna@example.com'] },
    always: { dry_run: true },
  },
  'a client has what its grants need': {
    ...{ method: 'POST', path: '/clients', schema: 'ClientRequest' },
    members: {
      redirect_uris: [[], ['https://app.example/callback']],
      token_endpoint_auth_method: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
      jwks: [{ keys: [{ ...jwk, alg: 'ES256' }] }],
    },
    always: { name: 'a', scopes: ['read'] },
  },
  'a change of a user changes something': {
    ...{ method: 'PATCH', path: '/users/{id}', schema: 'UserChanges' },
    members: { disabled: [false], passkeys: [false], scopes: [['read']] },
  },
  'a review has an agent only to accept': {
    ...{ method: 'POST', path: '/submissions/{id}/review', schema: 'SubmissionReview' },
    members: { agent_id: [null, 'gptbot'], despite_people: [true, false] },
    always: { decision: 'reject' },
  },
  'a review that accepts has any': {
    ...{ method: 'POST', path: '/submissions/{id}/review', schema: 'SubmissionReview' },
    members: { agent_id: [null, 'gptbot'], despite_people: [true, false] },
    always: { decision: 'accept' },
  },
  'a signer is of who is verified by a signature': {
    ...{ method: 'POST', path: '/policy/explain', schema: 'PolicyExplanationRequest' },
    members: { verified: ['web-bot-auth', 'ip-range', 'reverse-dns'], signer: ['https://agent.example'] },
    always: { kind: 'agent' },
    within: (verdict) => ({ request: { verdict } }),
  },
  'a rule has a name, conditions and an action': {
    ...{ method: 'POST', path: '/policy/preview', schema: 'PolicyPreviewRequest' },
    members: {
      name: ['a rule'],
      when: [{}, { category: 'crawler' }, 'request.method == "GET"'],
      action: ['block', { block: { status: 451 } }],
      dry_run: [true],
      expires: ['2027-01-31T00:00:00Z'],
      unknown: [1],
    },
    always: { when: {} },
    within: (rule) => ({ policy: { rules: [rule] } }),
  },
  'a rule has conditions': {
    ...{ method: 'POST', path: '/policy/preview', schema: 'PolicyPreviewRequest' },
    members: { when: [{}, 'request.method == "GET"'], dry_run: [false] },
    always: { name: 'a rule', action: 'block' },
    within: (rule) => ({ policy: { rules: [rule] } }),
  },
  'a policy has members that are known': {
    ...{ method: 'POST', path: '/policy/preview', schema: 'PolicyPreviewRequest' },
    members: {
      rules: [[]],
      otherwise: ['pass', { block: {} }],
      unknown_signer: ['pass', { wait: '300ms' }, {}, 'wait'],
      rule: [[]],
    },
    within: (policy) => ({ policy }),
  },
  'a request to explain is one': {
    ...{ method: 'POST', path: '/policy/explain', schema: 'PolicyExplanationRequest' },
    members: { request: [{}, { method: 'GET' }, null], policy: [{}, { rules: [] }, null] },
  },
}
/** Lists of what a client may have. */
const GRANTS = ['client_credentials', 'authorization_code', 'refresh_token']

for (const version of VERSIONS)
  test(`${version.prefix}: what the schema accepts the API accepts, and the other way round`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true })
    await addAgent(manage)
    const takes = validatorsOf(openApiDocument(version, manage.url))
    const ids = await madeIn(manage)
    for (const [what, { method, path, schema, members, always = {}, within = whole }] of Object.entries(
      RULED,
    )) {
      const values: Record<string, fc.Arbitrary<unknown>> = Object.fromEntries(
        Object.entries(members).map(([name, some]) => [name, fc.constantFrom(...some)]),
      )
      if (schema === 'ClientRequest') values['grant_types'] = fc.shuffledSubarray(GRANTS, { minLength: 1 })
      const requiredKeys = schema === 'ClientRequest' ? ['grant_types'] : []
      const grants: Record<string, unknown> = schema === 'ClientRequest' ? { grant_types: GRANTS } : {}
      const examples = upToTwo(members).map((each) => ({ ...grants, ...each }))
      const outcomes = new Set<boolean>()
      await fc.assert(
        fc.asyncProperty(fc.record(values, { requiredKeys }), async (given) => {
          const body = within({ ...always, ...given })
          const isTaken = takes(schema, body)
          const target = `${version.prefix}${path.replace('{id}', ids.get(path) ?? '')}`
          const answered = await manage.ask(method, target, body)
          assert.equal(isTaken, answered.status !== 400, said(what, body, answered))
          outcomes.add(isTaken)
        }),
        { numRuns: examples.length + 10, examples: examples.map((each) => [each]) },
      )
      const isFree = what === 'a review that accepts has any'
      assert.deepEqual([...outcomes].toSorted(), isFree ? [true] : [false, true], what)
    }
    assert.deepEqual(manage.failures, [])
  })

test('versions of HTTP: the schema, and what is read, are the same', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const takes = validatorsOf(openApiDocument(VERSIONS[0]!, manage.url))
  const part = fc.constantFrom('http/', 'HTTP/', 'h', 'H', '1', '2', '3', '0', '.', '.0', '.1', ' ', '')
  const text = fc.array(part, { maxLength: 4 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(text, (http_version) => {
      const isRead = http_version === '' || versionIn(http_version) !== null
      assert.equal(takes('DetectionRequest', { ...UA, http_version }), isRead, http_version)
    }),
    { numRuns: 5_000 },
  )
  for (const [http_version, status] of [
    ['1.1', 200],
    ['2', 200],
    ['', 200],
    [null, 200],
    ['1', 400],
    ['4', 400],
    [2, 400],
  ] as const) {
    const answered = await manage.ask('POST', '/v1/detect', { ...UA, http_version })
    assert.equal(answered.status, status, said('http_version', { http_version }, answered))
    assert.equal(takes('DetectionRequest', { ...UA, http_version }), status === 200, String(http_version))
  }
})

test('arguments of tools are objects without rules at the root, which vendors of models refuse', async (t) => {
  const manage = await TestManagement.start(t)
  const { body } = await manage.ask('GET', '/v1/tools')
  const detect = body.tools.find(({ name }: { name: string }) => name === 'detect_agent').input_schema
  assert.equal(detect.type, 'object')
  for (const rule of ['anyOf', 'oneOf', 'allOf', 'if', 'not']) assert.equal(detect[rule], undefined, rule)
  const create = body.tools.find(({ name }: { name: string }) => name === 'create_task').input_schema
  assert.deepEqual([create.oneOf, create.required], [undefined, ['type']])
})

/** No member, each value of each, and each two members. */
function upToTwo(members: Ruled['members']): readonly Readonly<Record<string, unknown>>[] {
  const all = Object.entries(members)
  const ones = all.flatMap(([name, values]) => values.map((value) => ({ [name]: value })))
  const pairs = all.flatMap(([name, values], at) =>
    all.slice(at + 1).map(([other, others]) => ({ [name]: values.at(-1), [other]: others.at(-1) })),
  )
  return [{}, ...ones, ...pairs]
}

const whole = (members: object) => members

type Takes = (schema: string, value: unknown) => boolean

function validatorsOf(document: ReturnType<typeof openApiDocument>): Takes {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'document', ...(document as object) })
  return (schema, value) => ajv.getSchema(`document#/components/schemas/${schema}`)!(value) === true
}

async function addAgent({ storeUrl }: TestManagement): Promise<void> {
  const store = await Store.open(storeUrl)
  const [agent] = parseSoftwareList([{ id: 'gptbot', name: 'GPTBot', kind: 'agent', category: 'crawler' }])
  await store.transaction((queries) => store.catalogue.addSoftware(agent!, 0, queries))
  await store.close()
}

/** Ids for paths that name something. */
async function madeIn(manage: TestManagement): Promise<ReadonlyMap<string, string>> {
  const user = await manage.ask('POST', '/v1/users', { email: 'anna@example.com', scopes: ['read'] })
  const submission = { fingerprint: 't13d1312h2_f57a46bbacb6_ab7e3b40a677', type: 'ja4', agent_name: 'Acme' }
  const submitted = await manage.ask('POST', '/v1/signatures/submit', submission)
  return new Map([
    ['/users/{id}', user.body.id],
    ['/submissions/{id}/review', submitted.body.submissions[0].id],
  ])
}

function said(what: string, body: unknown, answered: Answered): string {
  return `${what}: ${JSON.stringify(body)} → ${answered.status} ${JSON.stringify(answered.body)}`
}
