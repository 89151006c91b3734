/** Values of one kind, each another, of its form; the same for the same number. */
export const hex = (number: number, digits: number) =>
  Math.imul(number, 0x9e3779b1).toString(16).replace('-', '').padStart(8, '0').repeat(8).slice(0, digits)
export const ja4Of = (number: number) =>
  `t13d${10 + (number % 89)}16h2_${hex(number, 12)}_${hex(number + 7, 12)}`
export const address4 = (number: number) =>
  `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`
export const address6 = (number: number) =>
  `2001:db8:${(number >> 8).toString(16)}:${(number & 255).toString(16)}::${number.toString(16)}`
