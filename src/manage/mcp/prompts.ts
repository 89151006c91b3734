import * as z from 'zod'
import { JA4_TYPES, wrongInFingerprint } from '../../classify/known/fingerprint-form.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { validated } from '../http/validate.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'

/** A prompt template that people can choose. It tells the model how to use the tools. */
export interface McpPrompt {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: z.ZodObject
  readonly text: (given: Given) => string
}

// biome-ignore lint/suspicious/noExplicitAny: each prompt's own schema defines it
type Given = any

export interface FilledPrompt {
  readonly description: string
  readonly text: string
}

/** Throws a Refusal if there is no such prompt, or its arguments are invalid. */
export function fillPrompt(name: string, given: unknown): FilledPrompt {
  const prompt = promptNamed(name)
  return {
    description: prompt.description,
    text: prompt.text(validated(prompt.arguments, given ?? {}, 'body')),
  }
}

export function promptNamed(name: string): McpPrompt {
  const found = PROMPTS.find((each) => each.name === name)
  if (found !== undefined) return found
  const near = didYouMean(
    name,
    PROMPTS.map((each) => each.name),
  )
  throw new Refusal('not_found', `there is no such prompt${near}`)
}

export function listPrompts() {
  return PROMPTS.map(({ name, title, description, arguments: { shape } }) => ({
    ...{ name, title, description },
    arguments: Object.entries(shape).map(([argument, schema]) => ({
      name: argument,
      description: (schema as z.ZodType).meta()?.description ?? '',
      required: !(schema as z.ZodType).safeParse(undefined).success,
    })),
  }))
}

const words = z.string().trim().min(1, 'is empty').max(2_000, 'is longer than 2000 characters')
const type = z.enum(JA4_TYPES)

const PROMPTS: readonly McpPrompt[] = [
  {
    name: 'investigate_fingerprint',
    title: 'Investigate a fingerprint',
    description: 'Who has this fingerprint, how sure that is, and whether it should become a signature.',
    arguments: z.strictObject({
      fingerprint: words.max(512).meta({ description: 'The fingerprint, as headers and Sightings have it.' }),
      type: type.default('ja4').meta({ description: `${JA4_TYPES.join(', ')}; ja4 unless it is said.` }),
      user_agent: words.optional().meta({ description: 'What came with it, where that is known.' }),
    }),
    text: ({ fingerprint, type, user_agent }) => {
      const wrong = wrongInFingerprint(type, fingerprint, false)
      if (wrong !== null) throw invalid([{ pointer: '/fingerprint', detail: wrong }])
      return [
        `Find out whose the ${type} fingerprint ${JSON.stringify(fingerprint)} is.`,
        ...(user_agent === undefined
          ? []
          : [`It came with the User-Agent ${JSON.stringify(user_agent)}, which is only a claim.`]),
        '',
        `1. lookup_fingerprint with it; if nobody has it, again with "match": "partial", and say which parts agree with whom.`,
        `2. detect_agent and then explain_detection with it${user_agent === undefined ? '' : ' and the User-Agent'}: what speaks for the verdict, what against it, and what was not told.`,
        '3. compare_fingerprints with the nearest one that is known: the same client, the same in another session, the same library, or different.',
        '4. Say in a few sentences who it most probably is, how sure that is, and what would settle it. Keep what was measured apart from what was claimed.',
        '5. Only where you are sure, and I agree: submit_signature with the agent, its category, and notes on why. It judges nothing before an administrator accepts it.',
      ].join('\n')
    },
  },
  {
    name: 'review_unknown_signatures',
    title: 'Review unknown signatures',
    description:
      'What on live traffic nobody is named for, the most frequent first, and what to do about it.',
    arguments: z.strictObject({
      type: type.optional().meta({ description: `Only these: ${JA4_TYPES.join(', ')}.` }),
      limit: z
        .string()
        .regex(/^(?:[1-9]|[1-4]\d|50)$/, 'takes a whole number from 1 to 50')
        .default('10')
        .meta({ description: 'How many, 1 to 50; 10 unless it is said.' }),
    }),
    text: ({ type, limit }) => {
      const query = new URLSearchParams({ unknown_only: 'true', sort: '-observations', limit })
      if (type !== undefined) query.set('type', type)
      return [
        `Read the resource gatehouse://signatures?${query}: fingerprints on live traffic that nobody is named for.`,
        '',
        'For each of them:',
        '1. lookup_fingerprint with "match": "partial": who shares its stable parts?',
        '2. explain_detection with it: what would a request with nothing but this fingerprint be held for, and why?',
        '3. Sort it: probably a known agent or library, probably a browser, or truly unknown.',
        '',
        'End with a table: fingerprint, requests seen, last seen, most probably, how sure, what to do. Where a submission is worth making, say with what name and category; do not submit before I agree.',
      ].join('\n')
    },
  },
  {
    name: 'write_policy_rule',
    title: 'Write a policy rule',
    description: 'A rule of the policy for what is wanted, on trial first, and what it would do to whom.',
    arguments: z.strictObject({
      goal: words.meta({
        description: 'What is wanted, in words: "keep unverified crawlers out of /search".',
      }),
      agent_id: words.max(200).optional().meta({ description: 'The agent that it is about.' }),
      category: words.max(100).optional().meta({ description: 'The category of agents that it is about.' }),
    }),
    text: ({ goal, agent_id, category }) =>
      [
        `Write a rule for the policy of Gatehouse. What is wanted: ${goal}`,
        ...(agent_id === undefined
          ? []
          : [
              `It is about the agent ${JSON.stringify(agent_id)}: read gatehouse://agents/${encodeURIComponent(agent_id)} first.`,
            ]),
        ...(category === undefined
          ? []
          : [`It is about agents of the category ${JSON.stringify(category)}.`]),
        '',
        RULE_FORM,
        '',
        '1. Read gatehouse://policy if you may (it needs the scope admin): the first rule that holds decides, so say where the new one belongs.',
        '2. Look at get_stats, and at get_agent where agents are named, to say how many requests it would touch.',
        '3. Prefer `verified: true` with `listed: true`, and `confidence_min`, to what a client can simply claim, and say whom it hurts if the verdict is wrong.',
        '4. Give the rule as YAML, with `dry_run: true` first. The policy is put in force by an administrator (PUT /policy, or the file), not by you; POST /policy/preview says what it would have changed.',
      ].join('\n'),
  },
]

export const PROMPT_ARGUMENTS: ReadonlyMap<string, readonly string[]> = new Map(
  PROMPTS.map(({ name, arguments: { shape } }) => [name, Object.keys(shape)]),
)

/** A short form of config/README.md. */
const RULE_FORM = [
  'A rule is `{name, when, action}`, with `dry_run: true` and `expires: TIME` where wanted. All under `when` must hold; each condition takes a value or a list, `*` stands for any run of characters:',
  '`verdict` (agent, automation, human, unknown), `agent`, `category`, `software`, `evidence`, `confidence_min`, `verified`, `listed`, `signer`, `forged`, `hello`, `ja4`, `stable`, `ja4h`, `http2`, `method`, `address`, `host`, `path`, `user_agent`, `header`, `expression` (CEL), `not`.',
  'Actions: `pass`, `tag`, `{block: {status: 403}}`, `{rate_limit: {per: agent, requests: 10, window: 1m}}`, `{tarpit: {delay: 10s}}`, `{redirect: {to: /docs}}`, `{route: {upstream: NAME}}`.',
].join('\n')
