/** What a database that cannot be reached means for work that is repeated: it is reported once, and nothing else. */
export class Outage {
  #isUnderway = false

  /** Never rejects. `begins` is called for the first of several failures in a row. */
  async outlive(work: () => Promise<void>, begins: (error: Error) => void): Promise<void> {
    try {
      await work()
      this.#isUnderway = false
    } catch (error) {
      if (!this.#isUnderway) begins(error as Error)
      this.#isUnderway = true
    }
  }
}
