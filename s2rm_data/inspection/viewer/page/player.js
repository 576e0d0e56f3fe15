// Time: which step is shown, and how it moves on.

const SPEEDS = [1, 2, 5, 10, 15, 30, 60]; // steps per second

class Player {
  constructor(draw) {
    this.draw = draw; // called with the step and whether time is running
    this.steps = 1;
    this.step = 0;
    this.perSecond = 10;
    this.isPlaying = false;
    this.repeats = true;
    this.rate = 0; // steps drawn in the last full second of playing
    this.tick = this.tick.bind(this);
  }

  load(steps, perSecond) {
    this.pause();
    this.steps = steps;
    this.perSecond = perSecond;
    this.step = 0;
  }

  go(step) {
    this.step = Math.max(0, Math.min(this.steps - 1, step));
    this.exact = this.step;
    this.draw(this.step, this.isPlaying);
  }

  play() {
    if (this.isPlaying) return;
    if (this.step === this.steps - 1) this.step = 0;
    this.isPlaying = true;
    this.exact = this.step;
    this.last = null;
    this.counted = { since: null, drawn: 0 };
    this.draw(this.step, true);
    requestAnimationFrame(this.tick);
  }

  pause() {
    if (!this.isPlaying) return;
    this.isPlaying = false;
    this.rate = 0;
    this.draw(this.step, false);
  }

  tick(now) {
    if (!this.isPlaying) return;
    const passed = this.last === null ? 0 : Math.min(now - this.last, 250); // a page that slept does not leap
    this.last = now;
    this.exact += (passed / 1000) * this.perSecond;
    if (this.exact >= this.steps) {
      if (!this.repeats) {
        this.step = this.steps - 1;
        this.pause();
        return;
      }
      this.exact %= this.steps;
    }
    const step = Math.floor(this.exact);
    if (step !== this.step) {
      this.step = step;
      this.draw(step, true);
      this.counted.drawn++;
    }
    this.count(now);
    requestAnimationFrame(this.tick);
  }

  count(now) {
    this.counted.since ??= now;
    const span = now - this.counted.since;
    if (span < 1000) return;
    this.rate = (1000 * this.counted.drawn) / span;
    this.counted = { since: now, drawn: 0 };
  }
}
