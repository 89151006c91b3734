import { isIP } from 'node:net'
import * as z from 'zod'
import { type Ja4Type, wrongInFingerprint } from '../../classify/known/fingerprint-form.ts'
import { PROOF_METHODS } from '../../classify/verdict/proof.ts'
import { isFingerprint } from '../../classify/known/signature.ts'
import { CATEGORIES } from '../../classify/known/software.ts'
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
export function fingerprintText(type: Ja4Type) {
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
      'All of the headers: a value, or several, for each name, in the order and the case in which they were sent.',
    example: { 'User-Agent': 'python-requests/2.32.5', Accept: '*/*' },
  }) as z.ZodType as z.ZodType<Readonly<Record<string, string | readonly string[]>>>

export const detectionFields = {
  user_agent: z.string().max(TEXT_LENGTH_MAX, TOO_LONG).nullish(),
  ja4: fingerprintText('ja4')
    .nullish()
    .meta({ description: 'Of the TLS hello.', example: 't13d1516h2_8daaf6152771_e5627efa2ab1' }),
  ja4h: fingerprintText('ja4h')
    .nullish()
    .meta({ description: 'Of the request; where it is not given it is made of `headers`.' }),
  headers: headers.nullish(),
  ja4s: fingerprintText('ja4s').nullish().meta({ description: 'Of what the server answered in TLS.' }),
  ja4x: fingerprintText('ja4x').nullish().meta({ description: "Of the client's certificate." }),
  http2: z
    .string()
    .refine(
      (text) => text === '' || isFingerprint('http2', text),
      'is no HTTP/2 fingerprint in Akamai’s form',
    )
    .nullish()
    .meta({ description: 'Of how HTTP/2 was opened, in the form of Akamai.' }),
  method: z
    .string()
    .regex(/^[!#$%&'*+.^_`|~\w-]{0,64}$/, 'is no method')
    .nullish(),
  path: z
    .string()
    .max(TEXT_LENGTH_MAX, TOO_LONG)
    .regex(/^(?:[/*][^\s\0]*)?$/, 'starts with /, and has no blanks')
    .nullish()
    .meta({ description: 'What was asked for, with the query.' }),
  http_version: z.string().regex(HTTP_VERSION, 'takes 1.0, 1.1, 2, 3').nullish().meta({ example: '2' }),
  ip: z
    .string()
    .refine((text) => text === '' || isIP(text) !== 0, 'is no IP address')
    .nullish()
    .meta({ description: "The client's address: agents are verified by those that their vendors publish." }),
}

/** A detection needs one of these members, or `headers`: see `hasSomething`. */
const TELLING_TEXTS = ['user_agent', 'ja4', 'ja4h', 'ja4s', 'ja4x', 'http2'] as const
const HEADERS = is('headers', { type: 'object', minProperties: 1 })

export const detectionRequest = withUsual(
  z
    .strictObject(detectionFields)
    .superRefine((request, context) => {
      if (hasSomething(request)) return
      const message = 'says nothing to judge by: give user_agent, headers or a fingerprint'
      context.addIssue({ code: 'custom', message })
    })
    .meta({
      id: 'DetectionRequest',
      description:
        'What is known of a request. What is not given says nothing. It needs one of `user_agent`, `headers` and the fingerprints.',
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
        'With `web-bot-auth` the URL of who has signed, which need be nobody known; else the id of the agent.',
    }),
    key: z.string().nullable().meta({ description: 'The thumbprint of the key (RFC 7638).' }),
  })
  .meta({ id: 'Proof' })

export const evidence = z
  .strictObject({
    kind: z.string().meta({ example: 'names-agent' }),
    detail: z.string().meta({ description: 'In words.' }),
    weight: z.number().meta({
      description:
        'How much more it speaks for the verdict than for what is likeliest after it, in natural logarithms of odds; below zero it speaks against it.',
    }),
  })
  .meta({ id: 'Evidence' })

export const detectionAnswer = {
  is_agent: z.boolean(),
  confidence: z.number().min(0).max(1).meta({
    description:
      'How likely it is that the request is an agent’s, whatever the verdict: of those with 0.9, nine in ten are.',
  }),
  agent_name: z.string().nullable(),
  agent_category: z.enum(CATEGORIES).nullable(),
  fingerprints: z
    .strictObject({ ja4: z.string(), ja4s: z.string(), ja4h: z.string() })
    .meta({ description: 'Empty where they are not known.' }),
  agent_id: z.string().nullable().meta({ description: 'For `/agents/{agent_id}`.' }),
  verified: z.string().nullable().meta({
    description:
      'How its identity was proven: `web-bot-auth`, `ip-range`, `reverse-dns`; null unless it was.',
  }),
  proof: proof.nullable().meta({
    description:
      'Whose identity that is. `/detect` knows the published address ranges, and so proves by `ip` alone: signatures (which are of one live request, and good once), names of hosts and networks are looked at by the proxy.',
  }),
  conflicts: z.array(z.string()).meta({
    description:
      'Kinds of evidence that deny who it says, or has proven, to be: `spoofed-browser`, `address-foreign`, `host-foreign`, `network-foreign`, `signature-failed`, `signed-as-another`, `signed-with-foreign-fingerprint`, `signed-from-foreign-address`. `/detect` can find the first two; the rest is found on live requests.',
  }),
  verdict: z.enum(['agent', 'automation', 'human', 'unknown']).meta({
    description:
      '`automation`: a tool or library that nobody can name as an agent; `human`: a person’s browser. `unknown` is an answer.',
  }),
  software: software.nullable().meta({ description: 'The program, agent or not, where it is known.' }),
  evidence: z.array(evidence).meta({ description: 'Why: strongest first.' }),
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
    return refuse([], 'takes an object')
  let count = 0
  for (const name in headers) {
    const value = (headers as Record<string, unknown>)[name]
    if (!HEADER_NAME.test(name)) refuse([name], 'is no name of a header')
    if (typeof value === 'string') {
      count++
      if (LINE_END.test(value)) refuse([name], 'takes one line')
    } else if (!Array.isArray(value)) refuse([name], 'takes a string, or a list of strings')
    else {
      count += value.length
      for (const [index, each] of value.entries())
        if (typeof each !== 'string' || LINE_END.test(each))
          refuse([name, index], 'takes a string of one line')
    }
  }
  if (count > HEADERS_MAX) refuse([], `has more than ${HEADERS_MAX} headers`)
}

/** HTTP/2 has pseudo-headers, which begin with a colon. */
const HEADER_NAME = /^:?[!#$%&'*+.^_`|~\w-]+$/
const LINE_END = /[\r\n\0]/
/** Far more than servers accept. */
const HEADERS_MAX = 1000
