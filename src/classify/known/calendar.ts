/** Returns `null` for a day that does not exist. Independent of the clock and time zone of this machine. */
export function daysSince1970(year: number, month: number, day: number): number | null {
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  const lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
  const length = lengths[month - 1]
  if (length === undefined || day < 1 || day > length) return null
  const before = year - 1
  const leapDays = Math.floor(before / 4) - Math.floor(before / 100) + Math.floor(before / 400)
  const daysOfYear = lengths.slice(0, month - 1).reduce((sum, each) => sum + each, 0) + day - 1
  return before * 365 + leapDays + daysOfYear - DAYS_BEFORE_1970
}

/** Parses a day like `2026-11-21`; `null` if it is invalid. */
export function dayNumber(text: string): number | null {
  const [, year, month, day] = DAY.exec(text) ?? []
  return year === undefined ? null : daysSince1970(Number(year), Number(month), Number(day))
}

/** Counted from the first day of the year 1. */
const DAYS_BEFORE_1970 = 719_162
const DAY = /^(\d{4})-(\d\d)-(\d\d)$/
export const DAY_MS = 86_400_000
