import type { Owners, OwnerShare } from '../known/owners.ts'
import type { Software } from '../known/software.ts'
import type { Stack } from '../known/stack.ts'
import { agentOf, claimedAgent } from './observe.ts'
import type { Scratch } from './scratch.ts'
import type { Shown } from './shown.ts'
import type { Verdict } from './verdict.ts'

/** The program that the verdict names. `before`: the agent that was named first on this connection. */
export function nameOf(
  kind: Verdict['kind'],
  shown: Shown,
  before: Software | null,
  { marks, reading }: Scratch,
): Software | null {
  const { claim, stack, headers, certificate } = shown
  const agent = agentOf(claim, reading)
  if (agent !== null && !agent.isFamily) return agent
  // An agent that the client names comes first, then an agent that was decided.
  const decided = marks.has('fingerprint-of-agent') ? decidedFor(shown) : null
  if (decided !== null && (before === null || before.isFamily)) return decided
  // A name alone does not make a client an agent: any client can send it.
  const called = claim.called?.kind === 'agent' && kind !== 'agent' ? null : claim.called
  if (called?.kind === 'agent' && (before === null || before.isFamily)) return called
  const claimed = claimedAgent(agent, before)
  if (claimed !== null) return claimed
  const shows = mostlyOne(certificate.shares) ?? mostlyOne(haveBoth(headers, stack))
  // The User-Agent names the library that the agent is built with.
  const isAgent = marks.has('headers-of-agents') || marks.has('certificate-of-agents')
  if (isAgent && shows?.kind === 'agent') return shows
  if (claim.software !== null) return builtOn(claim.software, reading.browser) ?? claim.software
  if (reading.tool !== null) return reading.tool
  if (called !== null) return called
  return shows ?? mostlyOne(stack.shares)
}

/** The browser of the header, if it has the User-Agent of the one that it is built on. */
function builtOn({ kind, givesWay }: Software, browser: Software | null): Software | null {
  return kind === 'browser' && givesWay > 0 ? browser : null
}

/** The least shared fingerprint comes first. If it was decided for several agents, it names none of them. */
function decidedFor({ certificate, headers, stack }: Shown): Software | null {
  for (const { decided } of [certificate, headers, stack])
    if (decided.length > 0) return decided.length === 1 ? decided[0]! : null
  return null
}

/**
 * The owners that share both this header order and this hello. Empty if the hello is known only of others.
 */
function haveBoth(headers: Owners, stack: Stack): readonly OwnerShare[] {
  if (stack.shares.length === 0) return headers.shares
  const both = headers.shares.flatMap(({ software, share }) => {
    const other = stack.shares.find((each) => each.software === software)
    return other === undefined ? [] : [{ software, share: share * other.share }]
  })
  const total = both.reduce((sum, { share }) => sum + share, 0)
  return both.map(({ software, share }) => ({ software, share: share / total }))
}

/** The one program that has almost the whole share. */
function mostlyOne(shares: readonly OwnerShare[]): Software | null {
  return shares.find(({ share }) => share >= NAMED_SHARE_MIN)?.software ?? null
}

const NAMED_SHARE_MIN = 0.9
