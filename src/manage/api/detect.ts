import { isIP } from 'node:net'
import * as z from 'zod'
import { type Ja4Type, wrongInFingerprint } from '../../classify/known/fingerprint-form.ts'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { isFingerprint } from '../../classify/known/signature.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import { type DetectionRequest, hasSomething } from '../judging/detection.ts'
import { is } from './member-rules.ts'
import { withUsual } from '../http/validate.ts'

/** The same limit as for recorded requests. */
const TEXT_LENGTH_MAX = 65_536
const TOO_LONG = `is longer than ${TEXT_LENGTH_MAX} characters`

/**
 * What `versionIn` reads, in upper or lower case: `1.1`, `HTTP/1.1`, `h2`. Empty means unknown. JSON Schema
 * patterns have no flags.
 */
const HTTP_VERSION = /^(?:(?:[hH][tT][tT][pP]\/)?(?:1\.[01]|[23](?:\.0)?)|[hH][123])?$/

/** A complete fingerprint of the JA4 family. Empty means unknown. */
function fingerprintText(type: Ja4Type) {
  return z.string().superRefine((text, context) => {
    if (isWhole(type, text)) return
    context.addIssue({ code: 'custom', message: wrongInFingerprint(type, text, false)! })
  })
}

function isWhole(type: Ja4Type, text: string): boolean {
  return text === '' || (isFingerprint(type, text) && !text.includes('*'))
}

/** Checked by hand: as a record of unions, it takes as long as all the rest of a detection. */
const headers = z
  .unknown()
  .superRefine((given, context) =>
    checkHeaders(given, (path, message) => context.addIssue({ code: 'custom', path, message })),
  )
  .meta({
    override: {
      type: 'object',
      additionalProperties: {
        anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }],
      },
    },
    description:
      'All headers, in the order and the case in which they were sent: one value or several for each name.',
    example: { 'User-Agent': 'python-requests/2.32.5', Accept: '*/*' },
  }) as z.ZodType as z.ZodType<Readonly<Record<string, string | readonly string[]>>>

const detectionFields = {
  user_agent: z.string().max(TEXT_LENGTH_MAX, TOO_LONG).nullish(),
  ja4: fingerprintText('ja4')
    .nullish()
    .meta({ description: 'The JA4 of the TLS hello.', example: 't13d1516h2_8daaf6152771_e5627efa2ab1' }),
  ja4h: fingerprintText('ja4h')
    .nullish()
    .meta({ description: 'The JA4H of the request. Default: computed from `headers`.' }),
  headers: headers.nullish(),
  ja4s: fingerprintText('ja4s').nullish().meta({ description: 'The JA4S of the TLS answer of the server.' }),
  ja4x: fingerprintText('ja4x').nullish().meta({ description: "The JA4X of the client's certificate." }),
  http2: z
    .string()
    .refine(
      (text) => text === '' || isFingerprint('http2', text),
      'is not an HTTP/2 fingerprint in Akamai’s format',
    )
    .nullish()
    .meta({ description: 'The HTTP/2 fingerprint of the connection, in Akamai’s format.' }),
  method: z
    .string()
    .regex(/^[!#$%&'*+.^_`|~\w-]{0,64}$/, 'is not a valid method')
    .nullish(),
  path: z
    .string()
    .max(TEXT_LENGTH_MAX, TOO_LONG)
    .regex(/^(?:[/*][^\s\0]*)?$/, 'must start with / and contain no spaces')
    .nullish()
    .meta({ description: 'The requested path with the query.' }),
  http_version: z
    .string()
    .regex(HTTP_VERSION, 'must be one of 1.0, 1.1, 2, 3')
    .nullish()
    .meta({ example: '2' }),
  ip: z
    .string()
    .refine((text) => text === '' || isIP(text) !== 0, 'is not a valid IP address')
    .nullish()
    .meta({
      description: "The client's address. An agent is verified by the addresses that its vendor publishes.",
    }),
}

/** A detection needs one of these members, or `headers`: see `hasSomething`. */
const TELLING_TEXTS = ['user_agent', 'ja4', 'ja4h', 'ja4s', 'ja4x', 'http2'] as const
const HEADERS = is('headers', { type: 'object', minProperties: 1 })

export const detectionRequest = withUsual(
  z
    .strictObject(detectionFields)
    .superRefine((request, context) => {
      if (hasSomething(request)) return
      const message = 'contains nothing to judge: give user_agent, headers or a fingerprint'
      context.addIssue({ code: 'custom', message })
    })
    .meta({
      id: 'DetectionRequest',
      description:
        'What is known about a request. Missing fields count neither for nor against a verdict. At least one of `user_agent`, `headers` and the fingerprints is required.',
      override: {
        anyOf: [...TELLING_TEXTS.map((name) => is(name, { type: 'string', minLength: 1 })), HEADERS],
      },
    }),
  isUsual,
)

export const software = z.strictObject({
  id: z.string(),
  name: z.string(),
  kind: z.enum(['agent', 'tool', 'browser']),
})

export const proof = z
  .strictObject({
    method: z.enum(PROOF_METHODS),
    agent: z.string().meta({
      description:
        'With `web-bot-auth`, the URL of the signer, which may be unknown. Otherwise the id of the agent.',
    }),
    key: z.string().nullable().meta({ description: 'The thumbprint of the key (RFC 7638).' }),
  })
  .meta({ id: 'Proof' })

export const evidence = z
  .strictObject({
    kind: z.string().meta({ example: 'names-agent' }),
    detail: z.string().meta({ description: 'A readable description.' }),
    weight: z.number().meta({
      description:
        'How much it supports the verdict over the second most likely one, as the natural logarithm of odds. Below zero it speaks against the verdict.',
    }),
  })
  .meta({ id: 'Evidence' })

export const nameConfidence = z.number().min(0).max(1).meta({
  description:
    'The probability that the client is the named program (`software`, for an agent also `agent_name`). Near 1 if its identity is proven; a mere claim is far lower. 0 without a name.',
})

export const agentPurpose = z.array(z.enum(PURPOSES)).meta({
  description:
    'What the agent does with the pages that it fetches, as its vendor or a public list has published it. Empty if nothing is published.',
})

export const detectionAnswer = {
  is_agent: z.boolean(),
  confidence: z.number().min(0).max(1).meta({
    description:
      'The probability that the request comes from an agent, whatever the verdict. Of requests with 0.9, nine in ten come from agents.',
  }),
  agent_name: z.string().nullable(),
  agent_category: z.enum(CATEGORIES).nullable(),
  fingerprints: z
    .strictObject({ ja4: z.string(), ja4s: z.string(), ja4h: z.string() })
    .meta({ description: 'Empty if unknown.' }),
  agent_purpose: agentPurpose,
  name_confidence: nameConfidence,
  agent_id: z.string().nullable().meta({ description: 'For `/agents/{agent_id}`.' }),
  verified: z.string().nullable().meta({
    description:
      'How its identity was proven: `web-bot-auth`, `ip-range` or `reverse-dns`. `null`: not proven.',
  }),
  proof: proof.nullable().meta({
    description:
      'The proven identity. `/detect` checks only `ip` against published address ranges. Signatures (each valid once, for one live request), host names and networks are checked by the proxy.',
  }),
  conflicts: z.array(z.string()).meta({
    description:
      'Kinds of evidence that contradict the claimed or proven identity: `spoofed-browser`, `address-foreign`, `host-foreign`, `network-foreign`, `signature-failed`, `signed-as-another`, `signed-with-foreign-fingerprint`, `signed-from-foreign-address`. `/detect` can find the first two. The others are found only on live requests.',
  }),
  verdict: z.enum(['agent', 'automation', 'human', 'unknown']).meta({
    description:
      '`automation`: a tool or library that is not a known agent. `human`: a person’s browser. `unknown`: not enough evidence.',
  }),
  software: software
    .nullable()
    .meta({ description: 'The program, whether or not it is an agent. `null`: unknown.' }),
  evidence: z.array(evidence).meta({ description: 'The reasons for the verdict, strongest first.' }),
}

export const detectionResult = z
  .strictObject({ ...detectionAnswer, request_id: z.string() })
  .meta({ id: 'DetectionResult' })

/** The fast check for the members that most requests have. */
function isUsual(request: unknown): boolean {
  if (typeof request !== 'object' || request === null || Array.isArray(request)) return false
  for (const name in request) {
    const value = (request as Record<string, unknown>)[name]
    const isUsualValue = value === null ? Object.hasOwn(detectionFields, name) : isUsualField(name, value)
    if (!isUsualValue) return false
  }
  return hasSomething(request as DetectionRequest)
}

function isUsualField(name: string, value: unknown): boolean {
  switch (name) {
    case 'user_agent':
      return typeof value === 'string' && value.length <= TEXT_LENGTH_MAX
    case 'ja4':
    case 'ja4s':
    case 'ja4h':
    case 'ja4x':
      return typeof value === 'string' && isWhole(name, value)
    case 'headers': {
      let isRefused = false
      checkHeaders(value, () => {
        isRefused = true
      })
      return !isRefused
    }
    default:
      return false
  }
}

/** A header name must be a token, and a value must be one line. */
function checkHeaders(headers: unknown, refuse: (path: (string | number)[], message: string) => void): void {
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers))
    return refuse([], 'must be an object')
  let count = 0
  for (const name in headers) {
    const value = (headers as Record<string, unknown>)[name]
    if (!HEADER_NAME.test(name)) refuse([name], 'is not a valid header name')
    if (typeof value === 'string') {
      count++
      if (LINE_END.test(value)) refuse([name], 'must be one line')
    } else if (!Array.isArray(value)) refuse([name], 'must be a string, or a list of strings')
    else {
      count += value.length
      for (const [index, each] of value.entries())
        if (typeof each !== 'string' || LINE_END.test(each))
          refuse([name, index], 'must be a string of one line')
    }
  }
  if (count > HEADERS_MAX) refuse([], `has more than ${HEADERS_MAX} headers`)
}

/** HTTP/2 has pseudo-headers, which begin with a colon. */
const HEADER_NAME = /^:?[!#$%&'*+.^_`|~\w-]+$/
const LINE_END = /[\r\n\0]/
/** Far more than servers accept. */
const HEADERS_MAX = 1000
