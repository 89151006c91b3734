import type { Knowledge } from '../known/knowledge.ts'
import type { Scratch } from './scratch.ts'
import type { Shown } from './shown.ts'
import type { Software } from '../known/software.ts'
import type { Verdict } from './verdict.ts'

/**
 * The last Verdict of a connection and everything it depends on. Most requests on a connection get the same
 * Verdict.
 */
export class LastVerdict {
  #verdict: Verdict | null = null
  #knowledge: Knowledge | null = null
  #low = 0
  #high = 0
  #shown: Shown | null = null
  #before: Software | null = null
  #agent: Software | null = null
  #agentHeader: string | null = null
  #tool: Software | null = null
  #browser: Software | null = null

  /** `null` if any input differs. */
  recall(
    knowledge: Knowledge,
    { marks: { low, high }, reading: { agent, agentHeader, tool, browser } }: Scratch,
    { claim, stack, headers, certificate, addresses, addressesAgeDays }: Shown,
    before: Software | null,
  ): Verdict | null {
    const shown = this.#shown
    if (shown === null || knowledge !== this.#knowledge || low !== this.#low || high !== this.#high)
      return null
    if (claim !== shown.claim || stack !== shown.stack) return null
    if (headers !== shown.headers || certificate !== shown.certificate) return null
    if (addresses !== shown.addresses || addressesAgeDays !== shown.addressesAgeDays) return null
    if (before !== this.#before || agent !== this.#agent || tool !== this.#tool) return null
    return agentHeader === this.#agentHeader && browser === this.#browser ? this.#verdict : null
  }

  keep(
    knowledge: Knowledge,
    { marks: { low, high }, reading: { agent, agentHeader, tool, browser } }: Scratch,
    shown: Shown,
    before: Software | null,
    verdict: Verdict,
  ): void {
    this.#verdict = verdict
    this.#knowledge = knowledge
    this.#low = low
    this.#high = high
    this.#shown = shown
    this.#before = before
    this.#agent = agent
    this.#agentHeader = agentHeader
    this.#tool = tool
    this.#browser = browser
  }
}
