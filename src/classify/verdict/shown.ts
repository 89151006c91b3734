import type { AddressList } from '../known/address-lists.ts'
import type { Owners } from '../known/owners.ts'
import type { Stack } from '../known/stack.ts'
import type { Claim } from '../known/user-agent.ts'

/** The client's claim, and the known owners of its fingerprints. */
export interface Shown {
  readonly claim: Claim
  readonly stack: Stack
  /** The owners of its header order (JA4H). */
  readonly headers: Owners
  /** The owners of its certificate (JA4X). */
  readonly certificate: Owners
  /** The list that says something about the address of the claimed agent; `null` if it says nothing. */
  readonly addresses: AddressList | null
  /** The age of that list. */
  readonly addressesAgeDays: number
}
