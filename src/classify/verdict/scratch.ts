import { EvidenceSet } from '../known/evidence.ts'
import type { Knowledge } from '../known/knowledge.ts'
import { CLASSES } from '../known/weights.ts'
import type { PlaceFinding } from './proof.ts'
import { Reading } from './reading.ts'
import { RequestSigns } from './request-signs.ts'
import { Tally } from './tally.ts'
import type { Verdict } from './verdict.ts'

/**
 * The working memory of classification, so that a request allocates almost nothing. A caller that classifies
 * many requests keeps one and passes it to each call. Nothing awaits between reading a request and its
 * Verdict, so one is enough for a thread.
 */
export class Scratch {
  readonly reading = new Reading()
  readonly marks = new EvidenceSet()
  /** What the request shows of a campaign. */
  readonly signs = new RequestSigns()
  /** The id of the campaign that the request belongs to. */
  campaign: string | null = null
  /** For a request that is described. */
  readonly tally = new Tally()
  /** One for each of CLASSES. */
  readonly sums = new Float64Array(CLASSES.length)
  /** The last Verdict with a place, for each result of a lookup. */
  readonly placed = new WeakMap<PlaceFinding, Placed>()
  #knowledge: Knowledge | null = null
  readonly #verdicts = new Map<string, Verdict>()
  /** How campaigns know the client with this address; `null`: by its network. */
  readonly visitorOf: ((address: string) => number) | null

  constructor(visitorOf: Scratch['visitorOf'] = null) {
    this.visitorOf = visitorOf
  }

  /** The request shows nothing of a campaign. */
  forgetSigns(): void {
    this.signs.clear()
    this.campaign = null
  }

  /** The Verdicts by their evidence, all with this Knowledge. */
  verdictsWith(knowledge: Knowledge): Map<string, Verdict> {
    if (this.#knowledge !== knowledge) this.#verdicts.clear()
    this.#knowledge = knowledge
    return this.#verdicts
  }
}

export interface Placed {
  readonly verdict: Verdict
  readonly address: string
  readonly placed: Verdict
}
