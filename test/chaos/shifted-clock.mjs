/**
 * Preloaded into a process (`--import`): its wall clock differs from the machine's, its monotonic clock
 * does not. HARMOVELA_TEST_CLOCK_SHIFTS_MS: by how much, milliseconds; of several, separated by commas,
 * each SIGUSR2 puts the next one in force. What the clock shows then is printed.
 */
const shifts = process.env.HARMOVELA_TEST_CLOCK_SHIFTS_MS.split(",").map(Number);
const Real = globalThis.Date;
let place = 0;

class ShiftedDate extends Real {
  constructor(...args) {
    super(...(args.length === 0 ? [ShiftedDate.now()] : args));
  }
  static now() {
    return Real.now() + shifts[place];
  }
}
globalThis.Date = ShiftedDate;

const print = () => process.stdout.write(`wall ${Date.now()}\n`);
print();
process.on("SIGUSR2", () => {
  place = (place + 1) % shifts.length;
  print();
});
