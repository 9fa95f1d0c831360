//! Waits that end in time, and wakeups that are not lost.

use super::rig::*;

#[test]
fn wakers_and_timeouts_end_a_wait_and_none_is_lost() {
    let mut rig = Rig::game(Bitness::Bits64, &[]);
    rig.go(rig.start.thread);
    let waker = rig.platform.waker();
    let waking = std::thread::spawn(move || {
        for round in 0..2_000u32 {
            // Now and then in the very moment in which the wait begins.
            for _ in 0..(round * 37 % 400) {
                std::hint::spin_loop();
            }
            waker();
            if round % 10 == 0 {
                std::thread::sleep(Duration::from_micros(u64::from(round % 7) * 30));
            }
        }
    });
    // Each wait has a limit that would be noticed: were wakeups lost, the thread above would be done long before.
    let begin = Instant::now();
    while !waking.is_finished() {
        assert_eq!(rig.platform.wait(Duration::from_millis(3)), Ok(None));
        assert!(begin.elapsed() < LIMIT);
    }
    waking.join().unwrap();
    for _ in 0..300 {
        let waker = rig.platform.waker();
        let other = std::thread::spawn(move || waker());
        let begin = Instant::now();
        assert_eq!(rig.platform.wait(LIMIT), Ok(None));
        assert!(begin.elapsed() < LIMIT, "a wakeup was lost");
        other.join().unwrap();
        // One that came when the wait above had been ended by an earlier one.
        while rig.platform.wait(Duration::ZERO) != Ok(None) {}
    }
    for milliseconds in [0, 1, 20, 5] {
        let limit = Duration::from_millis(milliseconds);
        let begin = Instant::now();
        assert_eq!(rig.platform.wait(limit), Ok(None));
        assert!(begin.elapsed() >= limit);
    }
}

#[test]
fn without_a_program_a_wait_can_be_woken_too() {
    let mut platform = LinuxPlatform::new().unwrap();
    assert_eq!(platform.wait(Duration::from_millis(1)), Ok(None));
    for _ in 0..100 {
        let waker = platform.waker();
        let other = std::thread::spawn(move || waker());
        let begin = Instant::now();
        assert_eq!(platform.wait(LIMIT), Ok(None));
        assert!(begin.elapsed() < LIMIT, "a wakeup was lost");
        other.join().unwrap();
    }
}
