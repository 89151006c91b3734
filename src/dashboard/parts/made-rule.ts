/** Conditions of a rule, as in a policy. */
export type Conditions = Readonly<Record<string, unknown>>

/** The conditions that mean the same as filters of requests. `null`: no filter has one. */
export function conditionsOf(filters: Readonly<Record<string, string>>): Conditions | null {
  const found = Object.entries(filters).flatMap(([filter, value]) => {
    const condition = CONDITIONS[filter]
    // A redacted value or a hash cannot be written into a rule.
    return condition === undefined ||
      value === '' ||
      value.includes('[redacted]') ||
      value.includes('[id]') ||
      value.startsWith('hash:')
      ? []
      : [[condition, condition === 'verified' ? verifiedOf(value) : value] as const]
  })
  return found.length === 0 ? null : Object.fromEntries(found)
}

/** A policy with one more rule, before the others and on trial, and its name. `null`: the text has no conditions. */
export function withMadeRule(
  policy: unknown,
  text: string,
): { readonly policy: Conditions; readonly name: string } | null {
  const when = objectIn(text)
  if (when === null || typeof policy !== 'object' || policy === null) return null
  const name = freeName(JSON.stringify(policy), when)
  const rule = { name, when, action: 'block', dry_run: true }
  // `rules` stands alone.
  const layer = 'first' in policy || 'last' in policy ? 'last' : 'rules'
  const own = (policy as Conditions)[layer]
  return { name, policy: { ...policy, [layer]: [rule, ...(Array.isArray(own) ? own : [])] } }
}

/** The policy with this rule in force instead of on trial, to see its effect. */
export function withoutTrial<Policy>(policy: Policy, name: string): Policy {
  const decided = (rule: unknown) => {
    if (typeof rule !== 'object' || rule === null || (rule as { name?: unknown }).name !== name) return rule
    const { dry_run: _, ...rest } = rule as Record<string, unknown>
    return rest
  }
  return Object.fromEntries(
    Object.entries(policy as object).map(([member, value]) => [
      member,
      Array.isArray(value) ? value.map(decided) : value,
    ]),
  ) as Policy
}

function verifiedOf(value: string): string | boolean {
  return value === 'true' || value === 'false' ? value === 'true' : value
}

function objectIn(text: string): Conditions | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Conditions) : null
  } catch {
    return null
  }
}

/** A name that the policy does not have yet. */
export function freeName(policy: string, when: Conditions): string {
  const words = Object.values(when).join(' ')
  const name =
    words
      .replace(/[^A-Za-z0-9._:/-]+/g, ' ')
      .trim()
      .slice(0, NAME_MAX) || 'rule'
  for (let more = 1; ; more++) {
    const each = more === 1 ? name : `${name} ${more}`
    if (!policy.includes(JSON.stringify(each))) return each
  }
}

/** By filter. */
const CONDITIONS: Readonly<Record<string, string>> = {
  ...{ verdict: 'verdict', agent_id: 'agent', category: 'category', purpose: 'purpose' },
  ...{ verified: 'verified', host: 'host', path: 'path', address: 'address', ja4: 'ja4', ja4h: 'ja4h' },
  ...{ campaign_id: 'campaign', conflict: 'evidence' },
  ...{ mcp_method: 'mcp_method', mcp_tool: 'mcp_tool' },
}
/** Of the 64 characters that a rule may have. */
const NAME_MAX = 56
