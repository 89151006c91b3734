import * as z from 'zod'
import { JA4_TYPES, wrongInFingerprint } from '../../classify/known/fingerprint-form.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { validated } from '../http/validate.ts'
import { didYouMean } from '../../shared/did-you-mean.ts'

/** A prompt template that people can choose. It tells the model how to use the tools. */
interface McpPrompt {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: z.ZodObject
  readonly text: (given: PromptArguments) => string
}

// biome-ignore lint/suspicious/noExplicitAny: each prompt's own schema defines it
type PromptArguments = any

interface FilledPrompt {
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

function promptNamed(name: string): McpPrompt {
  const found = PROMPTS.find((each) => each.name === name)
  if (found !== undefined) return found
  const near = didYouMean(
    name,
    PROMPTS.map((each) => each.name),
  )
  throw new Refusal('not_found', `unknown prompt${near}`)
}

export function listPrompts() {
  return PROMPTS.map(({ name, title, description, arguments: { shape } }) => ({
    name,
    title,
    description,
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
    description:
      'Find the software that has this fingerprint, with what confidence, and whether it should become a signature.',
    arguments: z.strictObject({
      fingerprint: words
        .max(512)
        .meta({ description: 'The fingerprint, as shown in headers and Sightings.' }),
      type: type.default('ja4').meta({ description: `${JA4_TYPES.join(', ')}. Default: ja4.` }),
      user_agent: words.optional().meta({ description: 'The User-Agent that was sent with it, if known.' }),
    }),
    text: ({ fingerprint, type, user_agent }) => {
      const wrong = wrongInFingerprint(type, fingerprint, false)
      if (wrong !== null) throw invalid([{ pointer: '/fingerprint', detail: wrong }])
      return [
        `Find out which software has the ${type} fingerprint ${JSON.stringify(fingerprint)}.`,
        ...(user_agent === undefined
          ? []
          : [`It came with the User-Agent ${JSON.stringify(user_agent)}, which is only a claim.`]),
        '',
        `1. Call lookup_fingerprint with it. If nothing matches, call it again with "match": "partial", and say which parts match which software.`,
        `2. Call detect_agent and then explain_detection with it${user_agent === undefined ? '' : ' and the User-Agent'}: say what supports the verdict, what contradicts it, and which inputs are missing.`,
        '3. Call compare_fingerprints with the most similar known fingerprint: the same client, the same client in another session, the same library, or different.',
        '4. Say in a few sentences which software it most probably is, with what confidence, and what evidence would settle it. Keep measured facts and claims apart.',
        '5. Only if you are sure and I agree: call submit_signature with the agent, its category, and notes on why. It affects no verdict until an administrator accepts it.',
      ].join('\n')
    },
  },
  {
    name: 'review_unknown_signatures',
    title: 'Review unknown signatures',
    description:
      'Review the fingerprints on live traffic that no agent is named for, the most frequent first, and suggest what to do about them.',
    arguments: z.strictObject({
      type: type.optional().meta({ description: `Only fingerprints of this type: ${JA4_TYPES.join(', ')}.` }),
      limit: z
        .string()
        .regex(/^(?:[1-9]|[1-4]\d|50)$/, 'must be a whole number from 1 to 50')
        .default('10')
        .meta({ description: 'How many, from 1 to 50. Default: 10.' }),
    }),
    text: ({ type, limit }) => {
      const query = new URLSearchParams({ unknown_only: 'true', sort: '-observations', limit })
      if (type !== undefined) query.set('type', type)
      return [
        `Read the resource gatehouse://signatures?${query}: fingerprints on live traffic that no agent is named for.`,
        '',
        'For each fingerprint:',
        '1. Call lookup_fingerprint with "match": "partial": which software shares its stable parts?',
        '2. Call explain_detection with it: what is the verdict on a request with only this fingerprint, and why?',
        '3. Classify it: probably a known agent or library, probably a browser, or truly unknown.',
        '',
        'End with a table: fingerprint, requests seen, last seen, most probable software, confidence, what to do. If a submission is worth making, suggest a name and a category. Do not submit before I agree.',
      ].join('\n')
    },
  },
  {
    name: 'write_policy_rule',
    title: 'Write a policy rule',
    description: 'Write a policy rule for a goal, on trial first, and say which requests it would affect.',
    arguments: z.strictObject({
      goal: words.meta({
        description: 'The goal in words, such as "keep unverified crawlers out of /search".',
      }),
      agent_id: words.max(200).optional().meta({ description: 'The agent that the rule is about.' }),
      category: words
        .max(100)
        .optional()
        .meta({ description: 'The category of agents that the rule is about.' }),
      purpose: words
        .max(100)
        .optional()
        .meta({ description: 'The published purpose of agents that the rule is about.' }),
      app: words.max(63).optional().meta({
        description:
          'The app whose policy gets the rule, by its id. Without it, the policy of the organisation.',
      }),
    }),
    text: ({ goal, agent_id, category, purpose, app }) =>
      [
        `Write a rule for the policy of Gatehouse. The goal: ${goal}`,
        ...(agent_id === undefined
          ? []
          : [
              `It is about the agent ${JSON.stringify(agent_id)}: read gatehouse://agents/${encodeURIComponent(agent_id)} first.`,
            ]),
        ...(category === undefined
          ? []
          : [`It is about agents of the category ${JSON.stringify(category)}.`]),
        ...(purpose === undefined ? [] : [`It is about agents with the purpose ${JSON.stringify(purpose)}.`]),
        '',
        RULE_FORM,
        '',
        ...(app === undefined
          ? []
          : [
              `It belongs into the policy of the app ${JSON.stringify(app)}: read gatehouse://apps/${encodeURIComponent(app)}/policy. Its rules are tried after the "first" rules of the organisation and before its "last" rules. For this app, /apps/{app_id}/policy stands for /policy below.`,
              '',
            ]),
        '1. Read gatehouse://policy if you have the scope admin for all apps. The first rule that matches decides, so say where the new rule belongs.',
        '2. Call get_stats, and get_agent for each agent that the rule names, to say how many requests it would affect.',
        '3. Prefer `verified: true` with `listed: true`, and `confidence_min`, to conditions on what a client merely claims. Say which clients it would hurt if the verdict is wrong.',
        '4. Give the rule as YAML, with `dry_run: true` first. An administrator puts the policy in force (PUT /policy, or the file), not you. POST /policy/preview shows what it would have changed.',
      ].join('\n'),
  },
]

export const PROMPT_ARGUMENTS: ReadonlyMap<string, readonly string[]> = new Map(
  PROMPTS.map(({ name, arguments: { shape } }) => [name, Object.keys(shape)]),
)

/** A short form of config/README.md. */
const RULE_FORM = [
  'A rule is `{name, when, action}`, optionally with `dry_run: true` and `expires: TIME`. All conditions under `when` must match. Each takes a value or a list, and `*` stands for any characters:',
  '`verdict` (agent, automation, human, unknown), `agent`, `category`, `purpose` (search, assistant, agent, training, archive, monitor, preview, seo, security), `software`, `evidence`, `confidence_min`, `verified`, `listed`, `signer`, `card`, `forged`, `hello`, `ja4`, `stable`, `ja4h`, `http2`, `method`, `address`, `host`, `path`, `user_agent`, `header`, `mcp_method`, `mcp_tool`, `mcp_resource` (the call in the body, for apps that are MCP servers; name the `path` of the server beside them), `expression` (CEL), `not`.',
  'Actions: `pass`, `tag`, `{block: {status: 403}}`, `{rate_limit: {per: agent, requests: 10, window: 1m}}`, `{tarpit: {delay: 10s}}`, `{redirect: {to: /docs}}`, `{route: {upstream: NAME}}`, `{charge: {price: "0.01", currency: USD, scheme: x402}}`.',
].join('\n')
