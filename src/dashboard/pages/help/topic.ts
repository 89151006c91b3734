/** A page of the manual. */
export interface Topic {
  readonly topic: string
  readonly title: string
  readonly about: string
  readonly headings: readonly { readonly text: string; readonly anchor: string }[]
}
