/** What a table holds of persons. Each column is in `personal` or in `others`. */
export interface TableData {
  /** What each column tells of a person. */
  readonly personal: Readonly<Record<string, string>>
  /** The columns that tell nothing of a person. */
  readonly others: readonly string[]
  /** `null`: the table holds nothing of persons. */
  readonly purpose: Purpose | null
}

/** In the words of the manual. */
interface Purpose {
  readonly why: string
  /** For how long. */
  readonly kept: string
  /** What `gatehouse erase` does with it. */
  readonly erased: string
}

/** `others`: separated by spaces. */
export function personal(columns: TableData['personal'], purpose: Purpose, others: string): TableData {
  return { personal: columns, others: namesIn(others), purpose }
}

export function impersonal(others: string): TableData {
  return { personal: {}, others: namesIn(others), purpose: null }
}

/** The id of an account, where it says who did something. */
export const ACCOUNT_ID = 'the id of an account'
/** What happens to `ACCOUNT_ID`. */
export const ID_STAYS = 'stays: without the account, the id tells nothing'

function namesIn(text: string): readonly string[] {
  return text === '' ? [] : text.split(' ')
}
