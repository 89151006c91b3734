import { leastScopes } from '../http/access/needed-scopes.ts'
import { mayDo, type Principal, type Scope } from '../http/access/principal.ts'
import { neededBy, type Tool, type Tools, withDoor } from '../jobs/tools.ts'

/** A group of tools, as shown on the agent card. */
export interface Skill {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly tags: readonly string[]
  /** Examples of a text or a data part. */
  readonly examples: readonly string[]
  readonly tools: readonly string[]
}

/** The skills on the public card. */
export const SKILLS: readonly Skill[] = [
  {
    id: 'detect',
    name: 'Detect AI agents',
    description:
      'Detects whether a request comes from an AI agent, which one, with what confidence, and why. Explains detections and compares fingerprints. A text is read as a User-Agent, or as a JA4, JA4S, JA4H or JA4X fingerprint.',
    tags: ['detection', 'user-agent', 'ja4', 'fingerprint', 'bots'],
    examples: [
      'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)',
      't13d1516h2_8daaf6152771_e5627efa2ab1',
      '{"tool": "detect_agent", "arguments": {"user_agent": "GPTBot/1.2"}}',
    ],
    tools: ['detect_agent', 'explain_detection', 'compare_fingerprints'],
  },
  {
    id: 'catalogue',
    name: 'Look up agents and fingerprints',
    description:
      'Describes known AI agents and frameworks, and finds the software known to have a fingerprint.',
    tags: ['agents', 'fingerprint', 'catalogue'],
    examples: [
      '{"tool": "get_agent", "arguments": {"agent_id": "gptbot"}}',
      '{"tool": "lookup_fingerprint", "arguments": {"fingerprint": "t13d1516h2_8daaf6152771_e5627efa2ab1", "type": "ja4"}}',
    ],
    tools: ['lookup_fingerprint', 'list_agents', 'get_agent'],
  },
  {
    id: 'submissions',
    name: 'Submit fingerprints',
    description: 'Submits a new fingerprint for analysis. It affects no verdict until it is accepted.',
    tags: ['fingerprint', 'submission'],
    examples: [
      '{"tool": "submit_signature", "arguments": {"fingerprint": "t13d1516h2_8daaf6152771_e5627efa2ab1", "type": "ja4"}}',
    ],
    tools: ['submit_signature'],
  },
  {
    id: 'tasks',
    name: 'Work on many items',
    description:
      'Detects, looks up, compares or explains up to 10,000 items, or analyzes packet captures, in a task. The results are its artifact.',
    tags: ['batch', 'pcap', 'tasks'],
    examples: [
      '{"tool": "create_task", "arguments": {"type": "detect", "items": [{"user_agent": "GPTBot/1.2"}, {"user_agent": "curl/8.17.0"}]}}',
    ],
    tools: ['create_task', 'get_task'],
  },
  {
    id: 'statistics',
    name: 'Statistics',
    description: 'Counts the tracked agents and fingerprints, and recent detections.',
    tags: ['statistics'],
    examples: ['{"tool": "get_stats", "arguments": {"window": "24h"}}'],
    tools: ['get_stats'],
  },
]

/** One skill for each tool that the principal may use. */
export function skillsFor(principal: Principal, tools: Tools): readonly Skill[] {
  return SKILLS.flatMap((skill) =>
    skill.tools.flatMap((name) => {
      const tool = tools.find(name)
      return tool !== null && mayDo(principal, tool.scopes) ? [skillOf(tool, skill)] : []
    }),
  )
}

/** The least set of scopes with which a token can call every tool of the skills. */
export function scopesOf(
  skills: readonly Skill[],
  tools: Tools,
  held?: ReadonlySet<Scope>,
): readonly Scope[] {
  const names = skills.flatMap((skill) => skill.tools)
  const found = names.flatMap((name) => tools.find(name) ?? [])
  return leastScopes(
    found.flatMap((tool) => withDoor(neededBy(tool, null)).needs),
    held,
  )
}

function skillOf({ name, title, description }: Tool, { id, tags, examples }: Skill): Skill {
  const own = examples.filter((each) => each.startsWith(`{"tool": "${name}"`))
  return { id: name, name: title, description, tags: [id, ...tags], examples: own, tools: [name] }
}
